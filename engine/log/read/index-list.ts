/**
 * Sets of leaf indexes as sorted lists with random access, from which queries are built. `at` and `seek` cost a search,
 * so a page costs the same anywhere in a list.
 */
import { leastWhere } from "../../search.js";
import type { PostingList } from "../../store/postings/lists.js";

export type IndexList = PostingList;

/** A sorted array as an `IndexList`. */
export function arrayList(indexes: readonly number[] | Float64Array): IndexList {
  const seek = (index: number) => leastWhere(0, indexes.length, (rank) => indexes[rank]! >= index);
  return {
    length: indexes.length,
    at(rank) {
      const index = indexes[rank];
      if (index === undefined) throw new RangeError(`rank ${rank} is past the end of the list`);
      return index;
    },
    seek,
    window(index, count) {
      const rank = seek(index);
      return [...indexes.slice(rank, rank + count)];
    },
  };
}

/** Union of one or more lists without common indexes, within a log of `size` entries. */
export function disjointUnion(lists: readonly IndexList[], size: number): IndexList {
  if (lists.length === 1) return lists[0]!;
  const seek = (index: number) => lists.reduce((sum, list) => sum + list.seek(index), 0);
  return {
    length: lists.reduce((sum, list) => sum + list.length, 0),
    seek,
    // The index of rank r is the least one at which more than r indexes of the union are at or below it.
    at: (rank) => leastWhere(0, size, (index) => seek(index + 1) > rank),
    window: (index, count) => mergedWindow(lists, index, count),
  };
}

/** All of two ascending lists, ascending, each once. */
export function merged(one: readonly number[], other: readonly number[]): number[] {
  const all: number[] = [];
  for (let i = 0, j = 0; i < one.length || j < other.length; ) {
    const a = i < one.length ? one[i]! : Number.POSITIVE_INFINITY;
    const b = j < other.length ? other[j]! : Number.POSITIVE_INFINITY;
    all.push(a < b ? a : b);
    if (a <= b) i++;
    if (b <= a) j++;
  }
  return all;
}

/** The first `count` of several lists from `index` on: they are among the first `count` of each. */
function mergedWindow(lists: readonly Walkable[], index: number, count: number): number[] {
  let found: number[] = [];
  for (const list of lists) {
    const window = list.window(index, count);
    found = found.length ? merged(found, window).slice(0, count) : window;
  }
  return found;
}

/** A list that can only be walked: its length may be more than it has, and it has no ranks. */
export type Walkable = Pick<IndexList, "length" | "window">;

/** Union of lists that may have common indexes. */
export const union = (lists: readonly Walkable[]): Walkable =>
  lists.length === 1
    ? lists[0]!
    : {
        length: lists.reduce((sum, list) => sum + list.length, 0),
        window: (index, count) => mergedWindow(lists, index, count),
      };

/** A part of an intersection. */
export interface IntersectionPart {
  /** Where the next part begins; `to` when there is none. */
  readonly next: number;
}

/**
 * Adds to `found` the indexes from `from` on that all lists have, ascending, in at most `steps` steps: one for each index
 * of the shortest list, or a search where they lie far apart.
 */
export function intersect(
  lists: readonly Walkable[],
  { from, to, steps }: { readonly from: number; readonly to: number; readonly steps: number },
  found: number[],
): IntersectionPart {
  const [shortest, ...others] = [...lists].sort((a, b) => a.length - b.length).map((list) => new Walk(list)) as [
    Walk,
    ...Walk[],
  ];
  let candidate = from;
  for (let step = 0; step < steps; step++) {
    const index = shortest.next(candidate);
    if (index >= to) return { next: to };
    candidate = index;
    for (const other of others) candidate = Math.max(candidate, other.next(candidate));
    if (candidate === index) {
      found.push(index);
      candidate = index + 1;
    }
  }
  return { next: Math.min(candidate, to) };
}

/** Number of indexes that a walk reads at first, and at most: few if it leaps, many if it takes every index. */
const SHORTEST_WINDOW = 16;
const LONGEST_WINDOW = 4096;
const WINDOW_GROWTH = 4;
/** Indexes that are read in the time of a search for the next one. */
const SEARCH = 512;

/** Moves upwards through a list, reading it in windows. */
class Walk {
  readonly #list: Walkable;
  #window: readonly number[] = [];
  #asked = 0;
  #at = 0;
  #last = -1;

  constructor(list: Walkable) {
    this.#list = list;
  }

  /**
   * The least index that is at least `index`; infinite past the end. `index` must not be less than in the previous
   * call.
   */
  next(index: number): number {
    if (index > this.#last && !this.#read(index)) return Number.POSITIVE_INFINITY;
    const window = this.#window;
    let at = this.#at;
    // Gallops, then searches between the last two places.
    let stride = 1;
    while (at + stride < window.length && window[at + stride]! < index) {
      at += stride;
      stride *= 2;
    }
    if (window[at]! < index)
      at = leastWhere(at + 1, Math.min(at + stride, window.length), (place) => window[place]! >= index);
    this.#at = at;
    return window[at]!;
  }

  /** Reads a window from `index` on; longer than the one before if more of the list will be read than left out. @returns whether there is one */
  #read(index: number): boolean {
    const window = this.#window;
    // A window shorter than requested was the end of the list.
    if (window.length < this.#asked) return false;
    const isNear = window.length > 0 && (index - this.#last) * window.length <= SEARCH * (this.#last - window[0]! + 1);
    this.#asked = isNear ? Math.min(LONGEST_WINDOW, this.#asked * WINDOW_GROWTH) : SHORTEST_WINDOW;
    this.#window = this.#list.window(index, this.#asked);
    this.#at = 0;
    this.#last = this.#window.at(-1) ?? this.#last;
    return this.#window.length > 0;
  }
}
