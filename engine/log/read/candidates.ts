/**
 * Postings of prefix kinds: what may match the beginning of a text. Terms keep 16 bytes of a text, so an entry is read
 * where these do not tell. Searches pause after a few milliseconds; what is appended meanwhile changes nothing in the result.
 */
import type { CairnlogError } from "../../base/error.js";
import type { Steps } from "../../base/turns.js";
import type { Postings, RangePiece } from "../../store/postings/postings.js";
import { hexPrefixTerm, textPrefixTerm } from "../../store/postings/term.js";
import type { PostingKind } from "../../store/schema/schema.js";
import type { Entry } from "../../verify/tree/entry.js";
import { arrayList, type IndexList, indexesOf, newBits, union, type Walkable } from "./index-list.js";

/** The terms that begin with some text. */
export interface Candidates {
  readonly low: string;
  readonly high: string;
  /** Whether the 16 bytes of a term say all there is to say. */
  readonly certain: boolean;
}

/** Where candidates are looked up. */
export type CandidatePostings = Pick<Postings, "list" | "range" | "rangeCount">;

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

/**
 * The entries below `size` that may match, ascending, each once. Reads all postings of a condition: not more than `REACH`. To its
 * end it reads the postings that there were when it began: those of others may come before the place that it has reached.
 */
export function* gathered({ condition, ranges, count }: Weighed, size: number): Steps<IndexList> {
  const found = new Gathered(count, size);
  for (const postings of condition.postings())
    for (const { low, high } of ranges)
      for (let from: string | null = low; from !== null; ) {
        const piece: RangePiece = postings.range(from, high);
        found.add(piece.indexes);
        from = piece.next;
        if (from !== null) yield;
      }
  return arrayList(found.ascending());
}

/** Entries per posting up to which setting and reading a bit for each entry takes less time than sorting the postings. */
const BITS = 256;

/** Leaf indexes that come in no particular order. */
class Gathered {
  readonly #size: number;
  readonly #indexes: number[] = [];
  /** A bit for each entry; null if there are few postings. */
  readonly #bits: Int32Array | null;

  constructor(count: number, size: number) {
    this.#size = size;
    this.#bits = size > count * BITS ? null : newBits(size);
  }

  /** Adds those below the size: the others were appended after the search began. */
  add(indexes: readonly number[]): void {
    const [bits, size] = [this.#bits, this.#size];
    for (const index of indexes) {
      if (index >= size) continue;
      if (bits) bits[index >>> 5]! |= 1 << (index & 31);
      else this.#indexes.push(index);
    }
  }

  /** All of them, each once. */
  ascending(): readonly number[] | Float64Array {
    const bits = this.#bits;
    if (!bits) {
      const sorted = Float64Array.from(this.#indexes).sort();
      return sorted.filter((index, i) => !i || index !== sorted[i - 1]);
    }
    return indexesOf(bits);
  }
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
