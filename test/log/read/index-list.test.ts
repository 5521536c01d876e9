/**
 * Sets of leaf indexes: unions and intersections compared with the simplest implementation, and the number of reads.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { arrayList, disjointUnion, type IndexList, intersect } from "#cairnlog/engine/log/read/index-list.js";

const SIZE = 3_000;

/** The common items of all lists, found in turns of `steps`. */
function intersection(lists: readonly IndexList[], from: number, to: number, steps = Number.POSITIVE_INFINITY) {
  const found: number[] = [];
  for (let next = from; next < to; ) ({ next } = intersect(lists, { from: next, to, steps }, found));
  return found;
}

/** Dense, sparse and clustered, so that windows are walked, left early and skipped. */
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
const stretch = fc.tuple(fc.nat(SIZE), fc.nat(SIZE)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);

test("an intersection contains the common indexes within its bounds", () => {
  fc.assert(
    fc.property(fc.array(indexes, { minLength: 2, maxLength: 4 }), stretch, (lists, [from, to]) => {
      const [first, ...others] = lists as [number[], ...number[][]];
      const expected = first.filter(
        (index) => index >= from && index < to && others.every((list) => list.includes(index)),
      );
      for (const steps of [Number.POSITIVE_INFINITY, 1, 7])
        expect(intersection(lists.map(arrayList), from, to, steps)).toEqual(expected);
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
    }),
  );
});

test("intersections read dense lists in long windows, and leap over sparse ones", () => {
  const dense = Array.from({ length: 100_000 }, (_, index) => index);
  const sparse = [5, 40_000, 40_001, 99_999];
  let windows = 0;
  let read = 0;
  const counted = (list: IndexList): IndexList => ({
    ...list,
    window(index, count) {
      const found = list.window(index, count);
      windows++;
      read += found.length;
      return found;
    },
  });
  expect([...intersection([counted(arrayList(dense)), counted(arrayList(dense))], 0, 100_000)]).toHaveLength(100_000);
  expect(windows).toBeLessThan(100);
  expect(read).toBeLessThanOrEqual(2 * dense.length);
  [windows, read] = [0, 0];
  expect([...intersection([counted(arrayList(dense)), counted(arrayList(sparse))], 0, 100_000)]).toEqual(sparse);
  expect(read).toBeLessThan(200);
});
