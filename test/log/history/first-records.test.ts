/** A log that is given to the journal of several nodes: what its records begin with, which logs are refused, and what stays. */
import { cpSync, lstatSync, readdirSync, readlinkSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { backUp } from "#cairnlog/engine/log/history/backup.js";
import { eraseWithheld } from "#cairnlog/engine/log/history/erase.js";
import { beginRecords, leaveRecords } from "#cairnlog/engine/log/history/first-records.js";
import { openHistory } from "#cairnlog/engine/log/history/history.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { type PublishedTree, restore } from "#cairnlog/engine/log/history/restore.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import { takeWriterLock } from "#cairnlog/engine/store/lmdb/writerlock.js";
import { Batch } from "#cairnlog/engine/store/schema/batch.js";
import type { LogMeta } from "#cairnlog/engine/store/schema/rows.js";
import { FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator } from "../harness.js";
import { chain } from "./entries.js";

const settings = { SERVICE_NAME: "log.example" };
const position = { sequence: 9, epoch: 1, hash: Buffer.alloc(32, 7) };
const pool = createPool(1);
afterAll(() => pool.close());
const stranger = operatorKey(generatePrivateKey("ed25519"));
const begin = (path: string, make: Parameters<typeof beginRecords>[1], operator = testOperator) =>
  beginRecords({ path, operatorKey: operator.public.pem, settings }, make);

async function inStore<T>(path: string, ask: (store: Store) => T | Promise<T>): Promise<T> {
  const store = openStore({ path, mapSize: MAP_SIZE });
  try {
    return await ask(store);
  } finally {
    await store.close();
  }
}

const changeMeta = (path: string, change: Partial<LogMeta>) =>
  inStore(path, (store) => {
    const row = { ...store.get("meta", "log"), ...change };
    const after = store.position().sequence;
    return store.commit({ after, position: null, batches: [], tiles: [], rows: [{ table: "meta", key: "log", row }] });
  });

/** The log's own row and its place in a journal. */
const stateOf = (path: string) => inStore(path, (store) => [store.get("meta", "log"), store.position()]);

/** Neither the writer's slot nor a file is held any more. */
async function expectLetGo(path: string): Promise<void> {
  await (await takeWriterLock(path)).release();
  const links = readdirSync("/proc/self/fd").map((fd) => join("/proc/self/fd", fd));
  const open = links.filter((link) => lstatSync(link, { throwIfNoEntry: false })).map((link) => readlinkSync(link));
  expect(open.filter((file) => file.startsWith(`${path}/`))).toEqual([]);
}

const note = (text: string) => ({ event_type: "https://example.org/note", payload: { text } });

async function builtLog(): Promise<string> {
  const path = join(temporaryFolder(), "log");
  const { log } = await openTestLog({ path });
  await log.append(note("to be withheld"));
  await log.append([note("two"), note("three")]);
  await log.close();
  return path;
}

test("records begin with all batches, without what is withheld, and the log stands behind them", async () => {
  const path = await builtLog();
  const { log } = await openTestLog({ path });
  await withhold({ log, writer: log }, 1, { reason: "an order", basis: null });
  const shown = Array.from({ length: log.size }, (_, index) => log.entryAt(index));
  await log.close();
  const [meta] = await stateOf(path);
  let given: Batch[] = [];
  const size = await begin(path, async ({ rows, batches }) => {
    expect(rows).toEqual([{ table: "meta", key: "log", row: { ...(meta as LogMeta), settings } }]);
    given = [...batches].map(({ firstIndex, packed, count }) => {
      const batch = new Batch(firstIndex, Buffer.from(packed));
      expect(batch.count).toBe(count);
      return batch;
    });
    return position;
  });
  expect(size).toBe(4);
  expect(given.map(({ firstIndex }) => firstIndex)).toEqual([0, 1, 3]);
  const entries = given.flatMap((batch) => Array.from({ length: batch.count }, (_, i) => JSON.parse(batch.text(i))));
  expect(entries).toEqual(shown);
  expect(entries[0].payload).toBeNull();
  expect(await stateOf(path)).toEqual([{ ...(meta as LogMeta), settings }, position]);
  await expectLetGo(path);
});

test("where there is no log, records begin with one row, and nothing is made", async () => {
  const path = join(temporaryFolder(), "log");
  const make = vi.fn(async () => position);
  expect(await begin(path, make)).toBe(0);
  const row = { format: FORMAT, key_id: testOperator.fingerprint, created_at: expect.any(String), settings };
  expect(make.mock.calls).toEqual([[{ rows: [{ table: "meta", key: "log", row }], batches: [] }]]);
  expect(lstatSync(path, { throwIfNoEntry: false })).toBeUndefined();
});

test("a journal that cannot be made leaves the log as it is, and lets go of it", async () => {
  const path = await builtLog();
  const before = await stateOf(path);
  const refusal = new CairnlogError("storage-failed", "refused by the test");
  await expect(begin(path, () => Promise.reject(refusal))).rejects.toBe(refusal);
  expect(await stateOf(path)).toEqual(before);
  await expectLetGo(path);
  expect(await begin(path, async () => position)).toBe(3);
});

test.each<[string, (path: string) => Promise<unknown>, object]>([
  ["is being rebuilt", (path) => changeMeta(path, { rebuilding: true }), { code: "precondition-failed" }],
  ["is in an older format", (path) => changeMeta(path, { format: FORMAT - 1 }), { code: "precondition-failed" }],
  ["is of another operator", (path) => changeMeta(path, { key_id: stranger.fingerprint }), { code: "wrong-operator" }],
  [
    "has lost its own row",
    (path) =>
      inStore(path, (store) => {
        const rows = [{ table: "meta" as const, key: "log", row: undefined }];
        const after = store.position().sequence;
        return store.commit({ after, position: null, batches: [], tiles: [], rows });
      }),
    { code: "precondition-failed" },
  ],
])("a log that %s is refused, unchanged, and let go of", async (_, change, refusal) => {
  const path = await builtLog();
  await change(path);
  const before = await stateOf(path);
  const make = vi.fn(async () => position);
  await expect(begin(path, make)).rejects.toMatchObject(refusal);
  expect(make).not.toHaveBeenCalled();
  expect(await stateOf(path)).toEqual(before);
  await expectLetGo(path);
});

test("a log that cannot be opened is let go of", async () => {
  const path = await builtLog();
  writeFileSync(join(path, "data.mdb"), "damaged");
  await expect(begin(path, async () => position)).rejects.toMatchObject({ code: "corrupt-log" });
  await expectLetGo(path);
});

test("logs whose heads a node could not check are refused: after a rotation, and an import", async () => {
  const rotated = await builtLog();
  await rotateOperatorKey({ path: rotated, from: testOperator, to: stranger, projection: noProjection });
  const imported = join(temporaryFolder(), "log");
  await importEntries({ path: imported, signer: testOperator, mapSize: MAP_SIZE }, chain([{}, {}, {}]));
  for (const [path, operator, why] of [
    [rotated, stranger, "more than one operator key"],
    [rotated, testOperator, "was retired"],
    [imported, testOperator, "imported entries without tree heads"],
  ] as const) {
    const make = vi.fn(async () => position);
    await expect(begin(path, make, operator)).rejects.toThrow(why);
    expect(make).not.toHaveBeenCalled();
    await expectLetGo(path);
  }
});

/** What the backup of a log becomes; nothing is known to be published, but for what is said. */
async function restored(path: string, published: readonly PublishedTree[] = []): Promise<string> {
  const [from, to] = [join(temporaryFolder(), "backup"), join(temporaryFolder(), "log")];
  const operatorKey = testOperator.public.pem;
  await backUp({ path, to: from, operatorKey });
  await restore({ from, path: to, operatorKey, projection: noProjection, pool, published, mayFork: false });
  return to;
}

test.each([
  ["empty", 0, false],
  ["with entries", 3, false],
  ["empty and restored from a backup", 0, true],
  ["with entries and restored from a backup", 3, true],
])(
  "a log in a journal, %s, takes nothing that is made without it until it is taken out",
  async (_, entries, isRestored) => {
    const source = entries ? await builtLog() : join(temporaryFolder(), "log");
    if (!entries) await (await openTestLog({ path: source })).log.close();
    expect(await begin(source, async () => position)).toBe(entries);
    const path = isRestored ? await restored(source) : source;
    const before = await stateOf(path);
    const history = { path, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE };
    const ways: (() => Promise<unknown>)[] = [
      () => openTestLog({ path }),
      () => openHistory(history),
      () => importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, chain([{}])),
      () => rotateOperatorKey({ path, from: testOperator, to: stranger, projection: noProjection }),
    ];
    for (const way of ways)
      await expect(way()).rejects.toMatchObject({
        code: "precondition-failed",
        message: expect.stringContaining("replicate leave"),
      });
    expect(await stateOf(path)).toEqual(before);
    await expectLetGo(path);
    await leaveRecords(path, async () => {});
    const writer = await openHistory(history);
    expect(writer.size).toBe(entries);
    await writer.close();
    // Its backup is that of a log which nobody else writes.
    await expect(restored(path)).rejects.toThrow(/it is not known whether more was published/);
  },
);

test("records can begin with what was restored from the backup of a node", async () => {
  const source = await builtLog();
  await begin(source, async () => position);
  const path = await restored(source);
  expect((await stateOf(path))[0]).toMatchObject({ in_journal: true });
  expect(await begin(path, async () => position)).toBe(3);
  expect(await stateOf(path)).toEqual([{ ...((await stateOf(source))[0] as LogMeta), settings }, position]);
});

test("a log that is written is refused, and goes on", async () => {
  const { log, path } = await openTestLog();
  await log.append(note("one"));
  await expect(begin(path, async () => position)).rejects.toMatchObject({ code: "in-use" });
  await log.append(note("two"));
  expect(log.size).toBe(2);
});

test("a log that was killed before its copy without withheld payloads was in place leaves for good", async () => {
  const path = await builtLog();
  await begin(path, async () => position);
  const copy = join(temporaryFolder(), "copy");
  cpSync(path, copy, { recursive: true });
  renameSync(copy, join(path, "erased"));
  await leaveRecords(path, async () => {});
  await eraseWithheld({ path, projection: noProjection, mapSize: MAP_SIZE });
  const [, left] = await stateOf(path);
  expect(left).toEqual({ ...position, sequence: position.sequence + 1, hash: Buffer.alloc(32) });
});

test("a node's backup that ends before what is published is refused where that is said, as any other", async () => {
  const path = await builtLog();
  await begin(path, async () => position);
  const published = { tree_size: 99, root_hash: "00".repeat(32), source: "a witness" };
  await expect(restored(path, [published])).rejects.toThrow("a witness");
  await restored(path);
});
