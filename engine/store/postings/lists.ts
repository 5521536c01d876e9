/** Lists of postings, which are read in parts: one in each run, and those in memory. */
import { leastWhere } from "../../base/search.js";

/** The ascending leaf indexes of one term. `at` and `seek` cost a search, not a scan. Valid until the next append. */
export interface PostingList {
  readonly length: number;
  at(rank: number): number;
  /** The number of indexes below `index`. */
  seek(index: number): number;
  /** Up to `count` indexes from `index` on, ascending. Costs one search in all. */
  window(index: number, count: number): number[];
  /** All indexes in [from, to), ascending. */
  between(from: number, to: number): number[];
  /** Sets the bit number `index - from` of every index in [from, to). @param from a multiple of 32 */
  fill(bits: Int32Array, from: number, to: number): void;
  /** Sets the marks of those of `indexes`, which ascend, that are in this list. Costs a search for each. */
  mark(indexes: readonly number[], marks: Uint8Array): void;
}

/** The part of a list that is in one run or in memory. */
export interface Segment {
  readonly length: number;
  at(rank: number): number;
  seek(index: number): number;
  read(rank: number, count: number, into: number[]): void;
  fill(bits: Int32Array, from: number, to: number): void;
  mark(indexes: readonly number[], marks: Uint8Array): void;
}

/** Ascending leaf indexes in memory. */
type Indexes = readonly number[] | Float64Array;

/** The number of `indexes` below `index`; the first `from` are known to be. */
export const countBelow = (indexes: Indexes, index: number, from = 0): number =>
  leastWhere(from, indexes.length, (rank) => indexes[rank]! >= index);

/** A part that is in memory: `indexes`, ascending. */
export const inMemory = (indexes: Indexes): Segment => ({
  length: indexes.length,
  at: (rank) => indexes[rank]!,
  seek: (index) => countBelow(indexes, index),
  read: (rank, count, into) => {
    for (let i = 0; i < count; i++) into.push(indexes[rank + i]!);
  },
  fill: (bits, from, to) => {
    for (let rank = countBelow(indexes, from); rank < indexes.length && indexes[rank]! < to; rank++) {
      const bit = indexes[rank]! - from;
      bits[bit >>> 5]! |= 1 << (bit & 31);
    }
  },
  mark: (sought, marks) => {
    const end = countBelow(sought, indexes.at(-1)! + 1);
    for (let i = countBelow(sought, indexes[0]!), rank = 0; i < end; i++) {
      rank = countBelow(indexes, sought[i]!, rank);
      if (indexes[rank] === sought[i]) marks[i] = 1;
    }
  },
});

/** The list that consists of `segments`, in ascending order. */
export const joined = (segments: readonly Segment[]): PostingList => ({
  length: segments.reduce((sum, segment) => sum + segment.length, 0),
  at(rank) {
    let rest = rank;
    for (const segment of segments) {
      if (rest >= 0 && rest < segment.length) return segment.at(rest);
      rest -= segment.length;
    }
    throw new RangeError(`rank ${rank} is past the end of the list`);
  },
  seek: (index) => segments.reduce((sum, segment) => sum + segment.seek(index), 0),
  window(index, count) {
    const found: number[] = [];
    for (const segment of segments) {
      const rank = segment.seek(index);
      segment.read(rank, Math.min(count - found.length, segment.length - rank), found);
      if (found.length === count) break;
    }
    return found;
  },
  between(from, to) {
    const found: number[] = [];
    for (const segment of segments) {
      const rank = segment.seek(from);
      segment.read(rank, segment.seek(to) - rank, found);
    }
    return found;
  },
  fill(bits, from, to) {
    for (const segment of segments) segment.fill(bits, from, to);
  },
  mark(indexes, marks) {
    for (const segment of segments) segment.mark(indexes, marks);
  },
});

/** The part of `list` that is below `end`. */
export function listBelow(list: PostingList, end: number): PostingList {
  const length = list.seek(end);
  return {
    length,
    at(rank) {
      if (rank >= length) throw new RangeError(`rank ${rank} is past the end of the list`);
      return list.at(rank);
    },
    seek: (index) => Math.min(length, list.seek(index)),
    window: (index, count) => list.window(index, Math.max(0, Math.min(count, length - list.seek(index)))),
    between: (from, to) => list.between(from, Math.min(to, end)),
    fill: (bits, from, to) => list.fill(bits, from, Math.min(to, end)),
    mark: (indexes, marks) => list.mark(indexes.slice(0, countBelow(indexes, end)), marks),
  };
}

/** `list` without those of `gone`, ascending, that are in it: a few. */
export function without(list: PostingList, gone: readonly number[]): PostingList {
  const marks = new Uint8Array(gone.length);
  if (list.length) list.mark(gone, marks);
  const left = gone.filter((_, i) => marks[i]);
  if (!left.length) return list;
  const isLeft = new Set(left);
  // Of each that is left out, how many of those that are shown come before it.
  const shownBefore = left.map((index, i) => list.seek(index) - i);
  const shown = (index: number) => !isLeft.has(index);
  return {
    length: list.length - left.length,
    at: (rank) => list.at(rank + countBelow(shownBefore, rank + 1)),
    seek: (index) => list.seek(index) - countBelow(left, index),
    window: (index, count) =>
      list
        .window(index, count + left.length)
        .filter(shown)
        .slice(0, count),
    between: (from, to) => list.between(from, to).filter(shown),
    fill(bits, from, to) {
      const at = left.filter((index) => index >= from && index < to).map((index) => index - from);
      const before = at.map((bit) => (bits[bit >>> 5]! >>> (bit & 31)) & 1);
      list.fill(bits, from, to);
      // Another list may have set the bit.
      at.forEach((bit, i) => {
        if (!before[i]) bits[bit >>> 5]! &= ~(1 << (bit & 31));
      });
    },
    mark(indexes, into) {
      const own = new Uint8Array(indexes.length);
      list.mark(indexes, own);
      for (let i = 0; i < own.length; i++) if (own[i] && shown(indexes[i]!)) into[i] = 1;
    },
  };
}
