/** Lists of postings, which are read in parts: one in each run, and those in memory. */
import { leastWhere } from "../../search.js";

/** The ascending leaf indexes of one term. `at` and `seek` cost a search, not a scan. Valid until the next append. */
export interface PostingList {
  readonly length: number;
  at(rank: number): number;
  /** The number of indexes below `index`. */
  seek(index: number): number;
  /** Up to `count` indexes from `index` on, ascending. Costs one search in all. */
  window(index: number, count: number): number[];
}

/** The part of a list that is in one run or in memory. */
export interface Segment {
  readonly length: number;
  at(rank: number): number;
  seek(index: number): number;
  read(rank: number, count: number, into: number[]): void;
}

const countBelow = (indexes: readonly number[], index: number): number =>
  leastWhere(0, indexes.length, (rank) => indexes[rank]! >= index);

/** A part that is in memory: `indexes`, ascending. */
export const inMemory = (indexes: readonly number[]): Segment => ({
  length: indexes.length,
  at: (rank) => indexes[rank]!,
  seek: (index) => countBelow(indexes, index),
  read: (rank, count, into) => {
    for (let i = 0; i < count; i++) into.push(indexes[rank + i]!);
  },
});

/** The list that consists of `segments`, in ascending order. */
export const joined = (segments: readonly Segment[]): PostingList => ({
  length: segments.reduce((sum, segment) => sum + segment.length, 0),
  at(rank) {
    let rest = rank;
    for (const segment of segments) {
      if (rest < segment.length) return segment.at(rest);
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
});
