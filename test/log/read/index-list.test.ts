/** Sets of leaf indexes: unions and intersections compared with the simplest implementation, and how far a turn goes. */
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { bitList, newBits } from "#cairnlog/engine/log/read/bits.js";
import { TURN } from "#cairnlog/engine/log/read/costs.js";
import {
  arrayList,
  common,
  disjointUnion,
  either,
  foundIn,
  reach,
  union,
  type Walkable,
} from "#cairnlog/engine/log/read/index-list.js";

const SIZE = 3_000;

const USUAL = { ...TURN };
afterEach(() => Object.assign(TURN, USUAL));

/** The common items of all lists, and the end of each turn. */
function intersection(lists: readonly Walkable[], from: number, to: number) {
  const found: number[] = [];
  const ends: number[] = [];
  for (let next = from; next < to; next = ends.at(-1)!) {
    ends.push(reach(lists, next, to));
    found.push(...common(lists, next, ends.at(-1)!).indexes());
  }
  return { found, ends };
}

/** Dense, sparse and clustered, so that they are read as bits, looked up and skipped. */
const indexes = fc
  .tuple(
    fc.array(fc.nat(SIZE - 1), { maxLength: 40 }),
    fc.array(fc.record({ from: fc.nat(SIZE - 1), length: fc.nat(700), step: fc.integer({ min: 1, max: 5 }) }), {
      maxLength: 4,
    }),
  )
  .map(([single, clumps]) => {
    const all = new Set(single);
    for (const { from, length, step } of clumps)
      for (let index = from; index < Math.min(SIZE, from + length); index += step) all.add(index);
    return [...all].sort((a, b) => a - b);
  });
/** A list with the same indexes that is made of bits. */
function bitsOf(list: readonly number[]) {
  const bits = newBits(SIZE);
  for (const index of list) bits[index >>> 5]! |= 1 << (index & 31);
  return bitList(bits);
}
const stretch = fc.tuple(fc.nat(SIZE), fc.nat(SIZE)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);

test("an intersection contains the common indexes within its bounds", () => {
  fc.assert(
    fc.property(fc.array(indexes, { minLength: 2, maxLength: 6 }), stretch, (lists, [from, to]) => {
      const [first, ...others] = lists as [number[], ...number[][]];
      const expected = first.filter(
        (index) => index >= from && index < to && others.every((list) => list.includes(index)),
      );
      // As they are, as bits, and each in two parts that have some indexes in common.
      const whole = lists.map((list) => arrayList(list));
      const parted = lists.map((list) =>
        union([
          arrayList(list.filter((each) => each % 3)),
          arrayList(list.filter((each) => each % 2 === 0 || each % 3 === 0)),
        ]),
      );
      for (const turn of [USUAL, { dense: 64, blocks: 1 }, { dense: 700, blocks: 5 }, { dense: 7, blocks: 100 }])
        for (const made of [whole, lists.map(bitsOf), parted]) {
          Object.assign(TURN, turn);
          expect(intersection(made, from, to).found).toEqual(expected);
        }
    }),
  );
});

test("of two walks, what either has found, each index once", () => {
  fc.assert(
    fc.property(fc.array(indexes, { minLength: 4, maxLength: 4 }), stretch, (lists, [from, to]) => {
      const within = (list: readonly number[]) => list.filter((index) => index >= from && index < to);
      const [a, b, c, d] = lists as [number[], number[], number[], number[]];
      const both = (one: number[], other: number[]) => within(one.filter((index) => other.includes(index)));
      const expected = [...new Set([...both(a, b), ...both(c, d)])].sort((x, y) => x - y);
      for (const dense of [USUAL.dense, 64]) {
        TURN.dense = dense;
        const [one, other] = [[a, b] as const, [c, d] as const].map((pair) => common(pair.map(arrayList), from, to));
        for (const found of [either(one!, other!, from, to), either(foundIn(both(a, b)), other!, from, to)]) {
          expect(found.indexes()).toEqual(expected);
          expect(found.length).toBe(expected.length);
        }
      }
    }),
  );
});

test("a union is read at any rank, from any index, and through windows", () => {
  fc.assert(
    fc.property(indexes, fc.integer({ min: 1, max: 4 }), fc.nat(SIZE), fc.nat(50), (all, parts, index, count) => {
      const lists = Array.from({ length: parts }, (_, part) => arrayList(all.filter((each) => each % parts === part)));
      const union = disjointUnion(lists, SIZE);
      const rank = all.filter((each) => each < index).length;
      expect([union.length, union.seek(index)]).toEqual([all.length, rank]);
      expect(union.window(index, count)).toEqual(all.slice(rank, rank + count));
      if (rank < all.length) expect(union.at(rank)).toBe(all[rank]);
      expect(union.between(index, index + count)).toEqual(all.filter((each) => each >= index && each < index + count));
    }),
  );
});

test("bits are read at any rank, from any index, through windows and stretches", () => {
  fc.assert(
    fc.property(indexes, fc.nat(2 * SIZE), fc.nat(700), fc.array(fc.nat(2 * SIZE)), (all, index, count, some) => {
      const list = bitsOf(all);
      const rank = all.filter((each) => each < index).length;
      expect([list.length, list.seek(index)]).toEqual([all.length, rank]);
      expect(list.window(index, count)).toEqual(all.slice(rank, rank + count));
      const within = all.filter((each) => each >= index && each < index + count);
      expect(list.between(index, index + count)).toEqual(within);
      if (rank < all.length) expect(list.at(rank)).toBe(all[rank]);
      for (const wrong of [-1, all.length]) expect(() => list.at(wrong)).toThrow(RangeError);
      const base = index - (index % 32);
      const bits = newBits(index + count + 32 - base);
      list.fill(bits, base, index + count);
      expect(bitList(bits).between(0, SIZE)).toEqual(
        all.filter((each) => each >= base && each < index + count).map((each) => each - base),
      );
      const sought = some.sort((a, b) => a - b);
      const marks = new Uint8Array(sought.length);
      list.mark(sought, marks);
      expect([...marks]).toEqual(sought.map((each) => Number(all.includes(each))));
    }),
  );
});

test("without a list all indexes are common", () => {
  expect(intersection([], 3, 6).found).toEqual([3, 4, 5]);
});

describe("a turn", () => {
  const everyNth = (n: number) => arrayList(Array.from({ length: 10_000 / n }, (_, i) => n * i));
  const turns = (lists: readonly Walkable[]) => {
    Object.assign(TURN, { dense: 1_000, blocks: 10 });
    return intersection(lists, 0, 10_000).ends.length;
  };

  test("ends after as many entries as are read in a turn, which lists and parts of a union share", () => {
    expect(turns([])).toBe(10);
    expect(turns([everyNth(1)])).toBe(10);
    expect(turns([everyNth(1), everyNth(2)])).toBe(20);
    expect(turns([everyNth(1), everyNth(2), everyNth(3)])).toBe(30);
    expect(turns([everyNth(1), union([everyNth(2), everyNth(3)])])).toBe(30);
  });

  test("goes on where few blocks have to be read, or few indexes are looked for", () => {
    expect(turns([everyNth(1), everyNth(200)])).toBe(5);
    expect(turns([everyNth(1_000), everyNth(1)])).toBe(2);
    expect(turns([everyNth(1_000), everyNth(1_000)])).toBe(1);
    expect(turns([everyNth(1), everyNth(5_000)])).toBe(1);
  });

  test("is half as long if it is one of two", () => {
    Object.assign(TURN, { dense: 1_000, blocks: 10 });
    expect(reach([everyNth(1), everyNth(2)], 0, 10_000, 2)).toBe(250);
    expect(reach([everyNth(1), everyNth(1_000)], 0, 10_000, 2)).toBe(4_000);
  });
});
