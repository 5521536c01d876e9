/** A check of the stored nodes of the RFC 6962 tree, and of the newest checkpoint. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { Rfc6962Growth } from "#cairnlog/engine/log/rfc6962/growth.js";
import type { Rfc6962Rows } from "#cairnlog/engine/store/postings/contract.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import type { Checkpoint } from "#cairnlog/engine/verify/index.js";
import { buildData, check, copyOf, openData, rebuild, removeFolders, sentences } from "./everykind.js";

const pool = createPool(1);
const SIZE = 600;
let whole: string;
let checkpoint: Checkpoint;
beforeAll(async () => {
  whole = await buildData(pool, SIZE - 9);
  const registry = await openData(whole, pool);
  await new Rfc6962Growth(registry.log.rfc6962).extend(SIZE);
  checkpoint = { origin: "a", treeSize: 300, rootHash: Buffer.from(registry.log.rfc6962.root(300)).toString("hex") };
  await registry.close();
});
afterAll(async () => {
  removeFolders();
  await pool.close();
});

async function changed(change: (rows: Rfc6962Rows) => Promise<void>): Promise<string> {
  const dataDir = copyOf(whole);
  const store = openStore({ path: join(dataDir, "log") });
  await change(store.rfc6962);
  await store.close();
  return dataDir;
}

test("what the entries make is in order, with its checkpoint and without", async () => {
  expect(await check(whole, pool)).toMatchObject({ ok: true, entries: SIZE });
  expect(await check(whole, pool, { checkpoints: [checkpoint] })).toMatchObject({ ok: true });
  expect(await check(await changed((rows) => rows.clear()), pool, { checkpoints: [checkpoint] })).toMatchObject({
    ok: true,
  });
});

test.each<[string, RegExp, (rows: Rfc6962Rows) => Promise<void>]>([
  [
    "a node that differs",
    /^The stored tile 0 of level 1 .* differs from the one that the entries make\.$/,
    (rows) => rows.write([{ level: 1, index: 0, hashes: Buffer.alloc(64, 1) }], rows.extent()!),
  ],
  [
    "a tile too many",
    /^The stored tile 7 of level 1 .* the entries do not make it\.$/,
    (rows) => rows.write([{ level: 1, index: 7, hashes: Buffer.alloc(32, 1) }], rows.extent()!),
  ],
  [
    "nodes beyond the end",
    /go to entry 768, but the log has 600 entries\.$/,
    (rows) => rows.write([], { ...rows.extent()!, size: 768 }),
  ],
  [
    "nodes of another log",
    /are of another log\.$/,
    (rows) => rows.write([], { ...rows.extent()!, lastLeaf: Buffer.alloc(32, 1) }),
  ],
])("%s is named, and a rebuild removes it", async (_, sentence, change) => {
  const dataDir = await changed(change);
  const report = await check(dataDir, pool);
  expect(report.counts).toEqual({ entries: 0, derived: 1, private: 0 });
  expect(sentences(report)).toEqual([expect.stringMatching(sentence)]);
  expect(await rebuild(dataDir, pool)).toMatchObject({ ok: true });
});

test("a tile that is missing is named", async () => {
  const dataDir = await changed(async (rows) => {
    const extent = rows.extent()!;
    await rows.clear();
    await rows.write([], extent);
  });
  expect(sentences(await check(dataDir, pool))).toEqual([
    expect.stringMatching(/tile 0 of level 1 .* is missing on disk\.$/),
  ]);
});

test("a checkpoint of more entries, or with another root, is one of another log", async () => {
  const longer = await check(whole, pool, { checkpoints: [{ ...checkpoint, treeSize: 601 }] });
  expect(longer.counts).toEqual({ entries: 1, derived: 0, private: 0 });
  expect(sentences(longer)).toEqual(["A checkpoint of 601 entries was published, but the log has only 600."]);
  const other = await check(whole, pool, { checkpoints: [{ ...checkpoint, treeSize: 299 }] });
  expect(sentences(other)).toEqual(["The checkpoint of 299 entries that was published is not of this log."]);
});
