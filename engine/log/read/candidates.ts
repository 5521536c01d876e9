/**
 * Postings of prefix kinds: what may match the beginning of a text. Terms keep 16 bytes of a text, so an entry is read
 * where these do not tell.
 */
import type { CairnlogError } from "../../error.js";
import type { Postings } from "../../store/postings/postings.js";
import { hexPrefixTerm, textPrefixTerm } from "../../store/postings/term.js";
import type { PostingKind } from "../../store/schema.js";
import type { Entry } from "../../verify/entry.js";

/** Work that pauses at every `yield`, after about a millisecond. What is appended meanwhile changes nothing in the result. */
export type Slices<T> = Generator<void, T, void>;

/** Postings that may match a search term. */
export interface Candidates {
  readonly low: string;
  readonly high: string;
  /** Whether the 16 bytes of a term say all there is to say. */
  readonly certain: boolean;
  /** Parts of it, one of each next digit or byte; null where it is a single term, or need not be parted. */
  readonly parts: (() => Candidates[]) | null;
}

/** Where candidates are looked up. */
export interface CandidateSources {
  readonly postings: Pick<Postings, "list" | "range">;
  readonly size: number;
  entry(leafIndex: number): Entry | undefined;
}

export interface Sought {
  /** Whether an entry matches, for candidates that are not certain. */
  matches(entry: Entry): boolean;
  /** The error if more than `REACH` entries match. */
  tooMany(): CairnlogError;
  /** Whether that holds for a single term, too: a complete hash is served however many entries have it. */
  readonly boundsTerms: boolean;
}

const KEY_HEX = 32;
const KEY_BYTES = 16;
const DIGITS = "0123456789abcdef";
/** Bytes with which the next character of a word can begin or go on: those below `0` are neither letters nor digits. */
const FIRST_BYTE = 0x30;
const LAST_BYTE = 0xf4;

/** Postings that are read between two pauses. */
const RANGE_STEPS = 1_024;
/** Entries that a search by prefix may match; beyond, it wants more of it. Bounds memory and the time to sort them. */
export const REACH = 200_000;

/** Adds the leaf indexes of the entries that match to `found`. Costs what `range` holds. */
export function* addMatches(
  sources: CandidateSources,
  range: Candidates,
  sought: Sought,
  found: Set<number>,
): Slices<void> {
  const { low, high, certain, parts } = range;
  const add = (index: number) => {
    if (!found.has(index) && (certain || sought.matches(sources.entry(index)!))) found.add(index);
  };
  if (low === high) {
    // One term can have any number of entries: a document that everybody attests.
    for (let from = 0; ; ) {
      const window = sources.postings.list(low).window(from, RANGE_STEPS);
      for (const index of window) if (index < sources.size) add(index);
      if (sought.boundsTerms && found.size > REACH) throw sought.tooMany();
      if (window.length < RANGE_STEPS) return;
      from = window.at(-1)! + 1;
      yield;
    }
  }
  let count = 0;
  for (const index of sources.postings.range(low, high)) {
    // Where a walk stood, nothing tells after a pause: what is too much for one slice is begun anew in parts.
    if (parts && ++count > RANGE_STEPS) break;
    if (index < sources.size) add(index);
  }
  if (found.size > REACH) throw sought.tooMany();
  if (!parts || count <= RANGE_STEPS) return;
  for (const part of parts()) {
    yield;
    yield* addMatches(sources, part, sought, found);
  }
}

/** The terms of a kind that begin with these digits. */
export function digits(kind: PostingKind, hex: string): Candidates {
  const high = hexPrefixTerm(kind, hex.slice(0, KEY_HEX).padEnd(KEY_HEX, "f"));
  const parts = () => [...DIGITS].map((digit) => digits(kind, hex + digit));
  const isSplit = hex.length < KEY_HEX;
  return { low: hexPrefixTerm(kind, hex), high, certain: hex.length <= KEY_HEX, parts: isSplit ? parts : null };
}

/** The terms of a kind that begin with this text. */
export function text(kind: PostingKind, beginning: string): Candidates {
  const low = textPrefixTerm(kind, beginning);
  const bytes = Buffer.byteLength(beginning, "utf8");
  const high = low.slice(0, 1 + Math.min(bytes, KEY_BYTES)).padEnd(1 + KEY_BYTES, "\xff");
  // Shorter values are filled up with NULs, so a term that holds one proves nothing.
  return { low, high, certain: bytes <= KEY_BYTES && !beginning.includes("\0"), parts: null };
}

/** The terms of a kind of words that begin with this word. */
export function word(kind: PostingKind, beginning: string): Candidates {
  const { low, certain } = text(kind, beginning);
  const { length } = Buffer.from(beginning, "utf8").subarray(0, KEY_BYTES);
  return begun(low.slice(0, 1 + length), certain);
}

/** The terms of words that begin with the kind and the bytes in `start`. */
function begun(start: string, certain: boolean): Candidates {
  const [low, high] = ["\0", "\xff"].map((byte) => start.padEnd(1 + KEY_BYTES, byte)) as [string, string];
  const parts = () => {
    const longer = Array.from({ length: LAST_BYTE - FIRST_BYTE + 1 }, (_, i) =>
      begun(start + String.fromCharCode(FIRST_BYTE + i), certain),
    );
    return [{ low, high: low, certain, parts: null }, ...longer];
  };
  return { low, high, certain, parts: start.length <= KEY_BYTES ? parts : null };
}
