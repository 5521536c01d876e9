/**
 * Postings of prefix kinds: what may match the beginning of a text. Terms keep 16 bytes of a text, so an entry is read
 * where these do not tell.
 */
import type { CairnlogError } from "../../base/error.js";
import type { Postings } from "../../store/postings/postings.js";
import { hexPrefixTerm, textPrefixTerm } from "../../store/postings/term.js";
import type { PostingKind } from "../../store/schema/schema.js";
import type { Entry } from "../../verify/tree/entry.js";
import { bitList, newBits } from "./bits.js";
import { arrayList, type IndexList, union, type Walkable } from "./index-list.js";

/** The terms that begin with some text. */
export interface Candidates {
  readonly low: string;
  readonly high: string;
  /** Whether the 16 bytes of a term say all there is to say. */
  readonly certain: boolean;
}

/** Where candidates are looked up. */
export type CandidatePostings = Pick<Postings, "list" | "range" | "fillRange" | "rangeCount">;

/** Something that a match must have and that more than one term may show. */
export interface SearchCondition {
  /** The terms that may show it. */
  readonly ranges: readonly Candidates[];
  /** The postings in which they are looked up. Lists are made anew after every pause. */
  postings(): readonly CandidatePostings[];
  matches(entry: Entry): boolean;
  /** The error if too many entries match. */
  tooMany(): CairnlogError;
  /** Whether as many entries are read as may match: a complete hash is served however many entries have it. */
  readonly isServedWhole: boolean;
  /** Entries that match for certain: none of these is read. */
  readonly exact?: () => IndexList;
}

const KEY_HEX = 32;
const KEY_BYTES = 16;
/** A condition and what there is of it. */
export interface Weighed {
  readonly condition: SearchCondition;
  /** Its ranges that have postings. Those that come into the others after this moment are of later entries. */
  readonly ranges: readonly Candidates[];
  /** The postings of all of them. An entry counts as often as it has such terms. */
  readonly count: number;
  /** Whether each range is one term, whose entries are in order already, however many they are. */
  readonly isListed: boolean;
  /** Whether all entries in the ranges match. */
  readonly isCertain: boolean;
}

/** Costs a look-up or two in each run, for each range. */
export function weigh(condition: SearchCondition): Weighed {
  const sources = condition.postings();
  const counts = condition.ranges.map(({ low, high }) =>
    sources.reduce((sum, postings) => sum + postings.rangeCount(low, high), 0),
  );
  const ranges = condition.ranges.filter((_, i) => counts[i]);
  return {
    condition,
    ranges,
    count: counts.reduce((sum, count) => sum + count, 0),
    isListed: ranges.every(({ low, high }) => low === high),
    isCertain: ranges.every(({ certain }) => certain),
  };
}

/** The entries that may match a condition whose ranges are terms. Valid until the next append. */
export const candidateEntries = ({ condition, ranges }: Weighed): Walkable =>
  union(condition.postings().flatMap((source) => ranges.map(({ low }) => source.list(low))));

/** Entries per posting up to which setting and reading a bit for each entry takes less time than sorting the postings. */
const BITS = 1_024;

/** The entries below `size` that may match, ascending, each once. Reads all postings of a condition: not more than `REACH`. */
export function gathered({ condition, ranges, count }: Weighed, size: number): IndexList {
  const sources = condition.postings();
  if (size <= count * BITS) {
    const bits = newBits(size);
    for (const source of sources) for (const { low, high } of ranges) source.fillRange(low, high, bits);
    // Those at or above the size were appended after the search began.
    if (size % 32) bits[bits.length - 1]! &= (1 << (size % 32)) - 1;
    return bitList(bits);
  }
  const indexes = sources.flatMap((source) => ranges.flatMap(({ low, high }) => source.range(low, high)));
  const sorted = Float64Array.from(indexes).sort();
  return arrayList(sorted.filter((index, i) => index < size && (!i || index !== sorted[i - 1])));
}

/** The terms of a kind that begin with these digits. */
export function digits(kind: PostingKind, hex: string): Candidates {
  const high = hexPrefixTerm(kind, hex.slice(0, KEY_HEX).padEnd(KEY_HEX, "f"));
  return { low: hexPrefixTerm(kind, hex), high, certain: hex.length <= KEY_HEX };
}

/** The terms of a kind that begin with this text. */
export function beginningWith(kind: PostingKind, beginning: string): Candidates {
  const low = textPrefixTerm(kind, beginning);
  const bytes = Buffer.byteLength(beginning, "utf8");
  const high = low.slice(0, 1 + Math.min(bytes, KEY_BYTES)).padEnd(1 + KEY_BYTES, "\xff");
  // Shorter values are filled up with NULs, so a term that holds one proves nothing.
  return { low, high, certain: bytes <= KEY_BYTES && !beginning.includes("\0") };
}
