/**
 * The words of titles: how a title is found by what somebody remembers of it. The log files entries under these words, and
 * whoever asks the log can check with the same functions that an entry belongs into the answer.
 */

import type { JsonObject } from "../json/shape.js";
import { TITLE_MEMBERS } from "../keys/contract.js";

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
function wordsIn(text: string, fold: Fold): Iterable<string> {
  return PLAIN.test(text) ? parts(text, fold) : beginnings(text, fold);
}

function* beginnings(text: string, fold: Fold): Iterable<string> {
  for (const part of parts(text, fold)) {
    if (!IS_UNSPACED.test(part)) yield part;
    else for (let at = 0; at < part.length; at += part.codePointAt(at)! > 0xffff ? 2 : 1) yield part.slice(at);
  }
}

/** Gives the form in which texts are compared. */
type Fold = (text: string) => string;

/** Characters that cannot be seen, such as soft hyphens. */
const UNSEEN = /\p{Default_Ignorable_Code_Point}+/gu;
/** Accents, points and other marks that stand on letters of any script. Not those of kana, which make another letter. */
const MARKS = /(?![\u3099\u309a])\p{Script=Inherited}|(?=\p{M})[\u0591-\u05c7]/gu;

/**
 * Without what cannot be seen and without marks, in full case folding (ß is ss, ς is σ), and in one form of Unicode (NFKC).
 * One direction of case is not enough: there is no capital final sigma, and only lower case maps ẞ to ß.
 */
const folded: Fold = (text) =>
  text
    .normalize("NFKD")
    .replace(UNSEEN, "")
    .replace(MARKS, "")
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .replaceAll("ς", "σ")
    .normalize("NFKC");

/** How an older version folded texts: entries that it has filed are found in this way until they are filed again. */
export const foldedAsBefore: Fold = (text) => text.normalize("NFKC").toLowerCase();

/** Sequences of letters, marks and digits, folded. */
function parts(text: string, fold: Fold): string[] {
  // Most titles are ASCII, and this costs every append a third of what the classes of Unicode do.
  const form = PLAIN.test(text) ? text.toLowerCase() : fold(text);
  return form.match(PLAIN.test(form) ? PLAIN_WORD : WORD) ?? [];
}

/** The words under which an event with this payload is filed, each once: the first 32. */
export function titleWords(payload: JsonObject, fold = folded): Set<string> {
  const words = new Set<string>();
  for (const member of TITLE_MEMBERS) {
    const title = payload[member];
    if (typeof title !== "string") continue;
    for (const word of wordsIn(title, fold)) {
      if (words.size === MAX_WORDS) return words;
      words.add(word);
    }
  }
  return words;
}

/** The words of a query for titles, each once: a title matches if each of them begins one of its words. */
export function soughtWords(query: string, fold = folded): string[] {
  return [...new Set(parts(query, fold))];
}

/** Whether each of these words, as `soughtWords` gives them, begins a word of a title of the payload. */
export function hasTitleWords(payload: JsonObject, sought: readonly string[], fold = folded): boolean {
  const words = [...titleWords(payload, fold)];
  return sought.every((beginning) => words.some((word) => word.startsWith(beginning)));
}

/** Whether a title of the payload matches a query: now, or as an older version compares them. */
export const matchesTitle = (payload: JsonObject, query: string): boolean =>
  [folded, foldedAsBefore].some((fold) => hasTitleWords(payload, soughtWords(query, fold), fold));
