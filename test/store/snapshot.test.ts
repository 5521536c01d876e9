/** Snapshots: the data on disk at one moment, regardless of later writes. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { openStore } from "#cairnlog/engine/store/store.js";

const path = mkdtempSync(join(tmpdir(), "cairnlog-snapshot-"));
const store = openStore({ path });
afterAll(async () => {
  await store.close();
  rmSync(path, { recursive: true, force: true });
});

const write = (key: string, id: number | undefined) =>
  store.commit({
    after: 0,
    position: null,
    batches: [],
    rows: [{ table: "trustConfigHeads", key, row: id === undefined ? undefined : { id } }],
    tiles: [],
  });

it("shows neither rows that came later nor the loss of those that went, in the middle of a range either", async () => {
  for (const key of ["a", "b", "c"]) await write(key, 1);
  const before = store.snapshot();
  const range = before.range("trustConfigHeads")[Symbol.iterator]();
  expect(range.next().value).toEqual({ key: "a", row: { id: 1 } });
  await write("b", undefined);
  await write("bb", 2);
  await write("c", 2);
  const after = store.snapshot();
  expect(range.next().value).toEqual({ key: "b", row: { id: 1 } });
  expect(range.next().value).toEqual({ key: "c", row: { id: 1 } });
  expect(range.next().done).toBe(true);
  expect(before.get("trustConfigHeads", "bb")).toBeUndefined();
  expect([...after.range("trustConfigHeads", "b", "d")]).toEqual([
    { key: "bb", row: { id: 2 } },
    { key: "c", row: { id: 2 } },
  ]);
  before.close();
  expect(after.get("trustConfigHeads", "c")).toEqual({ id: 2 });
  after.close();
  expect(store.get("trustConfigHeads", "c")).toEqual({ id: 2 });
});
