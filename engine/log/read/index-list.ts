/**
 * Sets of leaf indexes as sorted lists with random access, from which queries are built. `at` and `seek` cost a search,
 * so a page costs the same anywhere in a list.
 */
import { leastWhere } from "../../base/search.js";
import { inMemory, joined, type PostingList } from "../../store/postings/lists.js";
import { countOf, indexesOf, newBits } from "./bits.js";
import { TURN } from "./costs.js";

export type IndexList = PostingList;

/** A sorted array as an `IndexList`. */
export const arrayList = (indexes: readonly number[] | Float64Array): IndexList => joined([inMemory(indexes)]);

/** A list that has no ranks: it may have fewer indexes than `length` and `seek` say. */
export interface Walkable extends Pick<IndexList, "length" | "seek" | "between" | "fill" | "mark"> {
  /** The number of lists that it is made of, if it is not one. */
  readonly parts?: number;
}

export const hasRanks = (list: Walkable): list is IndexList => "at" in list;

const sumOf = <T>(items: readonly T[], count: (item: T) => number): number =>
  items.reduce((sum, item) => sum + count(item), 0);

/** Union of lists that may have common indexes. */
export const union = (lists: readonly Walkable[]): Walkable =>
  lists.length === 1
    ? lists[0]!
    : {
        parts: lists.length,
        length: sumOf(lists, ({ length }) => length),
        seek: (index) => sumOf(lists, (list) => list.seek(index)),
        between: (from, to) => mergedAll(lists.map((list) => list.between(from, to))),
        fill(bits, from, to) {
          for (const list of lists) list.fill(bits, from, to);
        },
        mark(indexes, marks) {
          for (const list of lists) list.mark(indexes, marks);
        },
      };

/** Union of one or more lists without common indexes, within a log of `size` entries. */
export function disjointUnion(lists: readonly IndexList[], size: number): IndexList {
  if (lists.length === 1) return lists[0]!;
  const all = union(lists);
  return {
    ...all,
    // The index of rank r is the least one at which more than r indexes of the union are at or below it.
    at: (rank) => leastWhere(0, size, (index) => all.seek(index + 1) > rank),
    // The first `count` of the union are among the first `count` of each list.
    window: (index, count) => mergedAll(lists.map((list) => list.window(index, count))).slice(0, count),
  };
}

/** All of two ascending lists, ascending, each once. */
function merged(one: readonly number[], other: readonly number[]): number[] {
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

/** Like `merged`, of any number of lists. */
function mergedAll(lists: readonly number[][]): number[] {
  if (lists.length < 2) return lists[0] ?? [];
  const half = lists.length >>> 1;
  return merged(mergedAll(lists.slice(0, half)), mergedAll(lists.slice(half)));
}

/** Indexes in a block of postings, about. */
const BLOCK = 512;
/** Indexes that are looked for, one by one, in the time in which a block is read. */
const SEARCHES = 16;
/** Postings or words of bitmaps that are read in the time in which an index is looked for. */
const READS = 64;
/** Words of bitmaps that are read in the time in which an index is looked for in them. */
const FEW = 8;

const countIn = (list: Walkable, from: number, to: number): number => list.seek(to) - list.seek(from);
const partsOf = ({ parts = 1 }: Walkable): number => parts;

/** The work, in blocks, of looking for the indexes in [from, to) of the list that has the fewest there in all others. */
function workOf(lists: readonly Walkable[], from: number, to: number): number {
  const counts = lists.map((list) => countIn(list, from, to));
  const least = Math.min(...counts);
  return lists.reduce((work, list, i) => {
    const searches = least * partsOf(list);
    return work + Math.min(counts[i]! / BLOCK, searches) + searches / SEARCHES;
  }, 0);
}

/** Where a turn that intersects these lists from `from` on ends, at most `to`. @param shares the turn is shared with as many others */
export function reach(lists: readonly Walkable[], from: number, to: number, shares = 1): number {
  let width = Math.ceil(TURN.dense / shares / Math.max(1, sumOf(lists, partsOf)));
  while (lists.length && from + width < to && workOf(lists, from, from + 2 * width) * shares <= TURN.blocks) width *= 2;
  return Math.min(from + width, to);
}

/** Indexes that all lists of a walk have, ascending. */
export interface Found {
  readonly length: number;
  /** All of them, or up to `count` from the one number `first` on. */
  indexes(first?: number, count?: number): readonly number[];
  /** Sets the bit number `index - base` of each. */
  fill(bits: Int32Array, base: number): void;
}

export const foundIn = (indexes: readonly number[]): Found => ({
  length: indexes.length,
  indexes: (first = 0, count = indexes.length) => indexes.slice(first, first + count),
  fill(bits, base) {
    for (const index of indexes) bits[(index - base) >>> 5]! |= 1 << ((index - base) & 31);
  },
});

const foundAs = (bits: Int32Array, base: number): Found => ({
  length: countOf(bits),
  indexes: (first, count) => indexesOf(bits, base, first, count),
  fill(into) {
    for (let i = 0; i < bits.length; i++) into[i]! |= bits[i]!;
  },
});

/** The indexes in [from, to) that are in one of two, or in both. */
export function either(one: Found, other: Found, from: number, to: number): Found {
  if (to - from > TURN.dense) return foundIn(merged(one.indexes(), other.indexes()));
  const base = baseOf(from);
  const bits = newBits(to - base);
  for (const found of [one, other]) found.fill(bits, base);
  return foundAs(bits, base);
}

/** Those of the found, which are in [from, to), that a list has, too. */
export function alsoIn(list: IndexList, found: Found, from: number, to: number): Found {
  if (to - from > TURN.dense) return foundIn(marked(list, [...found.indexes()]));
  const base = baseOf(from);
  const [bits, others] = [newBits(to - base), newBits(to - base)];
  found.fill(bits, base);
  list.fill(others, base, to);
  for (let i = 0; i < bits.length; i++) bits[i]! &= others[i]!;
  return foundAs(bits, base);
}

/** The indexes in [from, to) that all lists have. */
export function common(lists: readonly Walkable[], from: number, to: number): Found {
  const weighed = lists
    .map((list) => ({ list, count: countIn(list, from, to) }))
    // What has every index leaves none out. A list without ranks may have fewer than it counts.
    .filter(({ list, count }) => count < to - from || !hasRanks(list));
  const [shortest, ...others] = weighed.sort((a, b) => a.count - b.count);
  if (!shortest) return foundIn(Array.from({ length: to - from }, (_, i) => from + i));
  // Frequent postings have bitmaps.
  const words = (to - from) / 32;
  const isSparse = shortest.count * weighed.length * READS < sumOf(weighed, ({ count }) => Math.min(count, words));
  if (isSparse || to - from > TURN.dense)
    return foundIn(others.reduce((found, { list }) => marked(list, found), shortest.list.between(from, to)));
  const base = baseOf(from);
  const bits = newBits(to - base);
  shortest.list.fill(bits, base, to);
  bits[0]! &= -1 << (from - base);
  const more = newBits(to - base);
  for (const [number, { list }] of others.entries()) {
    more.fill(0);
    list.fill(more, base, to);
    let left = 0;
    for (let i = 0; i < bits.length; i++) {
      bits[i]! &= more[i]!;
      if (bits[i]) left++;
    }
    // The first lists leave few: those are looked for in the others.
    if (left * FEW < bits.length && number + 1 < others.length)
      return foundIn(
        others.slice(number + 1).reduce((found, one) => marked(one.list, found), indexesOf(bits, base, 0, left * 32)),
      );
  }
  return foundAs(bits, base);
}

/** Bit 0 stands for this index, so that the bits of lists are taken by words. */
const baseOf = (from: number): number => from - (from % 32);

/** Those of `indexes` that a list has. */
function marked(list: Walkable, indexes: number[]): number[] {
  const marks = new Uint8Array(indexes.length);
  if (indexes.length) list.mark(indexes, marks);
  return indexes.filter((_, i) => marks[i]);
}
