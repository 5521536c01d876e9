/** The log's file is extended before LMDB needs the space, and never over pages that LMDB has written. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CairnlogError } from "#cairnlog/engine/error.js";
import { Health } from "#cairnlog/engine/store/lmdb/health.js";
import { growthOf } from "#cairnlog/engine/store/lmdb/reserve.js";
import type { JournalPosition } from "#cairnlog/engine/store/position.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, temporaryFolder } from "../log/harness.js";

const open = (path: string, options = {}) => openStore({ path, mapSize: MAP_SIZE, ...options });

/** Rows that are much larger than the estimate for a row. */
const bigRows = (commit: number) =>
  Array.from({ length: 40 }, (_, n) => ({
    table: "userNames" as const,
    key: `${commit}-${n}`,
    row: { user_id: String(commit % 10).repeat(100_000) },
  }));

async function commitAll(store: Store, commits: readonly number[]): Promise<void> {
  for (const commit of commits) {
    const { sequence } = store.position();
    const position: JournalPosition = { sequence: sequence + 1, epoch: 0, hash: Buffer.alloc(32) };
    const rows =
      commit % 2 ? bigRows(commit) : [{ table: "userNames" as const, key: `${commit}`, row: { user_id: "x" } }];
    await store.commit({ after: sequence, position, batches: [], tiles: [], rows });
  }
}

describe("the reserve of a log's file", () => {
  test("rows that take more than was estimated survive the next growth", async () => {
    expect(growthOf(40, 0)).toBeLessThan(40 * 100_000);
    const path = temporaryFolder();
    const store = open(path);
    const commits = Array.from({ length: 12 }, (_, n) => n);
    await commitAll(store, commits);
    await store.close();
    const again = open(path);
    for (const commit of commits.filter((n) => n % 2))
      for (const { key, row } of bigRows(commit)) expect(again.get("userNames", key)).toEqual(row);
    await again.close();
  });

  test("the file has room for the next batch before LMDB writes it", async () => {
    const path = temporaryFolder();
    const store = open(path);
    await commitAll(store, [0]);
    expect(statSync(join(path, "data.mdb")).size).toBeGreaterThan(store.usage().fileBytes + 200_000);
    await store.close();
  });
});

test("what is thrown away may fill the disk to its end", async () => {
  const minFreeBytes = Number.MAX_SAFE_INTEGER;
  const kept = open(temporaryFolder(), { minFreeBytes });
  await expect(commitAll(kept, [0])).rejects.toMatchObject({ code: "storage-full" });
  const scratch = open(temporaryFolder(), { minFreeBytes, isScratch: true });
  await commitAll(scratch, [0, 1]);
  await Promise.all([kept.close(), scratch.close()]);
});

test("who asks after a failure is told at once", () => {
  const health = new Health();
  const told: CairnlogError[] = [];
  health.observe((failure) => told.push(failure));
  const failure = health.judge(new Error("EIO"));
  health.observe((late) => told.push(late));
  expect(told).toEqual([failure, failure]);
});
