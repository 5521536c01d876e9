/**
 * The words of titles: how a title is found by what somebody remembers of it. The log files entries under these words, and
 * whoever asks the log can check with the same functions that an entry belongs into the answer.
 */
import { TITLE_MEMBERS } from "./contract.js";
import type { JsonObject } from "./json/shape.js";

/** Words of one entry that are filed; a title has 500 characters, and whoever writes it decides how many words they are. */
const MAX_WORDS = 32;

/** Scripts that put no space between words. */
const UNSPACED = "\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}";
/** A sequence of letters, marks and digits: of a script without spaces, or of the others. */
const WORD = new RegExp(`[${UNSPACED}][${UNSPACED}\\p{M}]*|(?:(?![${UNSPACED}])[\\p{L}\\p{M}\\p{N}])+`, "gu");
const IS_UNSPACED = new RegExp(`^[${UNSPACED}]`, "u");
const PLAIN = /^[\x20-\x7e]*$/;
const PLAIN_WORD = /[a-z0-9]+/g;

/** The words of a text in the form in which they are compared. In a script without spaces, a word begins at each character. */
function wordsIn(text: string): Iterable<string> {
  return PLAIN.test(text) ? parts(text) : beginnings(text);
}

function* beginnings(text: string): Iterable<string> {
  for (const part of parts(text)) {
    if (!IS_UNSPACED.test(part)) yield part;
    else for (let at = 0; at < part.length; at += part.codePointAt(at)! > 0xffff ? 2 : 1) yield part.slice(at);
  }
}

/** Sequences of letters, marks and digits, case-folded and in one form of Unicode (NFKC). */
function parts(text: string): string[] {
  // Most titles are ASCII, and this costs every append a third of what the classes of Unicode do.
  const folded = PLAIN.test(text) ? text.toLowerCase() : text.normalize("NFKC").toLowerCase();
  return folded.match(PLAIN.test(folded) ? PLAIN_WORD : WORD) ?? [];
}

/** The words under which an event with this payload is filed, each once: the first 32. */
export function titleWords(payload: JsonObject): Set<string> {
  const words = new Set<string>();
  for (const member of TITLE_MEMBERS) {
    const title = payload[member];
    if (typeof title !== "string") continue;
    for (const word of wordsIn(title)) {
      if (words.size === MAX_WORDS) return words;
      words.add(word);
    }
  }
  return words;
}

/** The words of a query for titles, each once: a title matches if each of them begins one of its words. */
export function soughtWords(query: string): string[] {
  return [...new Set(parts(query))];
}

/** Whether each of these words, as `soughtWords` gives them, begins a word of a title of the payload. */
export function hasTitleWords(payload: JsonObject, sought: readonly string[]): boolean {
  const words = [...titleWords(payload)];
  return sought.every((beginning) => words.some((word) => word.startsWith(beginning)));
}
