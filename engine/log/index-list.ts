/**
 * Sets of leaf indexes as sorted lists that can be jumped into: what queries are made of. `at` and `seek` cost a
 * search, so a page costs the page, wherever in the list it lies.
 */
import type { PostingList } from "../store/postings.js";

export type IndexList = PostingList;

/** A sorted array as a list. */
export function arrayList(indexes: readonly number[]): IndexList {
  return {
    length: indexes.length,
    at(rank) {
      const index = indexes[rank];
      if (index === undefined) throw new RangeError(`rank ${rank} is past the end of the list`);
      return index;
    },
    seek: (index) => search(indexes.length, (rank) => indexes[rank]! >= index),
  };
}

/** The least number below `count` for which `holds`, which must go on holding from there; `count` if there is none. */
function search(count: number, holds: (n: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Union of one or more lists that have no index in common, within a log of `size` entries. */
export function disjointUnion(lists: readonly IndexList[], size: number): IndexList {
  if (lists.length === 1) return lists[0]!;
  const seek = (index: number) => lists.reduce((sum, list) => sum + list.seek(index), 0);
  return {
    length: lists.reduce((sum, list) => sum + list.length, 0),
    seek,
    // The index of rank r is the least one with more than r of the union at or below it.
    at: (rank) => search(size, (index) => seek(index + 1) > rank),
  };
}

/** Every index that all lists have, ascending: costs a few searches for each index of the shortest list. */
export function* intersection(lists: readonly IndexList[], from: number, to: number): Iterable<number> {
  const [shortest, ...others] = [...lists].sort((a, b) => a.length - b.length) as [IndexList, ...IndexList[]];
  let candidate = from;
  for (;;) {
    const rank = shortest.seek(candidate);
    if (rank >= shortest.length) return;
    const index = shortest.at(rank);
    if (index >= to) return;
    candidate = index;
    for (const list of others) {
      const at = list.seek(candidate);
      if (at >= list.length) return;
      candidate = Math.max(candidate, list.at(at));
    }
    if (candidate === index) {
      yield index;
      candidate = index + 1;
    }
  }
}
