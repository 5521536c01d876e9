/** Lists of rows, compared with a map that is sorted for every query. */
import fc from "fast-check";
import { compareKeys } from "lmdb";
import { expect, test } from "vitest";
import { rowsBetween, type StateRow, withChanges } from "#cairnlog/engine/store/changeset.js";
import type { Key } from "#cairnlog/engine/store/schema/schema.js";

type Row = StateRow<"counters">;

/** Few keys, so that they coincide. All are keys of one table, so they have the same form. */
const keys: readonly fc.Arbitrary<Key>[] = [
  fc.integer({ min: 0, max: 12 }),
  fc.constantFrom("", "a", "ab", "b", "é"),
  fc.tuple(fc.constantFrom("a", "b"), fc.integer({ min: 0, max: 5 })),
];
const scenes = fc.constantFrom(...keys).chain((key) =>
  fc.record({
    stored: fc.array(key, { maxLength: 10 }),
    changes: fc.array(fc.tuple(key, fc.option(fc.nat(), { nil: undefined })), { maxLength: 10 }),
    start: key,
    end: key,
  }),
);

function sorted(entries: Iterable<readonly [Key, number | undefined]>): Row[] {
  const rows = new Map<string, readonly [Key, number | undefined]>();
  for (const entry of entries) rows.set(JSON.stringify(entry[0]), entry);
  return [...rows.values()]
    .filter(([, last]) => last !== undefined)
    .sort(([a], [b]) => compareKeys(a, b))
    .map(([key, last]) => ({ key, row: { last } }) as Row);
}

test("rows with changes, and a range of them, are those of a sorted map", () => {
  fc.assert(
    fc.property(scenes, ({ stored, changes, start, end }) => {
      const before = stored.map((key, i) => [key, i] as const);
      const rows = sorted(before);
      const changed = withChanges(
        rows,
        changes.map(([key, last]) => ({ key, row: last === undefined ? undefined : { last } }) as Row),
      );
      expect(changed).toEqual(sorted([...before, ...changes]));
      expect(rows).toEqual(sorted(before));
      const isWithin = ({ key }: { readonly key: Key }) => compareKeys(key, start) >= 0 && compareKeys(key, end) < 0;
      expect(rowsBetween(changed, start, end)).toEqual(changed.filter(isWithin));
    }),
    { numRuns: 1000 },
  );
});
