/** What a history is compared with: the newest entry and head, also after it was opened again; and the turns of its writes. */
import { createPrivateKey } from "node:crypto";
import { afterEach, describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import {
  type HistoryItem,
  type HistoryOptions,
  type HistoryWriter,
  openHistory,
} from "#cairnlog/engine/log/history/history.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { formatTimestamp, parseTimestamp } from "#cairnlog/engine/log/state/clock.js";
import { FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator, testPool } from "../harness.js";
import { chain, line, type MadeEntry, momentNumber, signedHead } from "./entries.js";

const pem = generatePrivateKey("ed25519");
const operator = operatorKey(pem);
const key = createPrivateKey(pem);
const entries = chain([{}, { chain_version: 2 }, { chain_version: 2 }, {}, {}]);

const writers = new Set<HistoryWriter>();
afterEach(async () => {
  for (const writer of writers) await writer.close();
  writers.clear();
});
async function opened(path = temporaryFolder(), options: Partial<HistoryOptions> = {}) {
  const writer = await openHistory({ path, operatorKey: operator.public.pem, mapSize: MAP_SIZE, ...options });
  writers.add(writer);
  return { writer, path };
}

const bare = (n: number, made: readonly MadeEntry[] = entries): HistoryItem => ({
  entry: line(made[n]!),
  otsProof: null,
  head: null,
});
/** Entry number `n` with the head that was signed so many microseconds after moment 1000. */
const headed = (n: number, micros = n): HistoryItem => {
  const digests = entries.slice(0, n + 1).map(({ entry_hash }) => entry_hash);
  const at = formatTimestamp(parseTimestamp(momentNumber(1000)) + micros);
  return { ...bare(n), head: signedHead(digests, { key, fingerprint: operator.fingerprint, timestamp: at }) };
};

describe("a head may be of the moment of the one before, and not earlier", () => {
  const earlier = (path: string) =>
    expect.objectContaining({
      code: "invalid-input",
      message: expect.stringContaining("The tree head is earlier than the head before it"),
      details: [expect.objectContaining({ path })],
    });

  test("in one call", async () => {
    const { writer } = await opened();
    await expect(writer.add([headed(0, 5), headed(1, 4)])).rejects.toEqual(earlier("/1/head"));
    expect(await writer.add([headed(0, 5), headed(1, 5), headed(2, 6)])).toEqual([]);
    expect(writer.size).toBe(3);
  });

  test("over an entry without one", async () => {
    const { writer } = await opened();
    await expect(writer.add([headed(0, 5), bare(1), headed(2, 4)])).rejects.toEqual(earlier("/2/head"));
    await writer.add([headed(0, 5), bare(1), headed(2, 5)]);
    expect(writer.end).toMatchObject({ head: { tree_size: 3 }, micros: parseTimestamp(momentNumber(1000)) + 5 });
  });

  test("in a later call, and after the log was opened again", async () => {
    const { writer, path } = await opened();
    await writer.add([headed(0, 5)]);
    await expect(writer.add([headed(1, 4)])).rejects.toEqual(earlier("/0/head"));
    await writer.close();
    const { writer: again } = await opened(path);
    await expect(again.add([headed(1, 4)])).rejects.toEqual(earlier("/0/head"));
    await again.add([headed(1, 5)]);
    expect(again.end?.head).toEqual(headed(1, 5).head);
  });
});

// The hash of an entry of version 1 does not cover its timestamp, so nothing follows from that.
test.each([
  [2, -1, false],
  [2, 0, true],
  [2, 1, true],
  [1, -1, true],
] as const)(
  "a head of an entry of version %i, %i microseconds after it, is taken: %s",
  async (version, micros, isTaken) => {
    const { writer } = await opened();
    const made = chain([{}, { chain_version: version }, { chain_version: version }]);
    await writer.add([bare(0, made)]);
    const items = [1, 2].map((n): HistoryItem => {
      const digests = made.slice(0, n + 1).map(({ entry_hash }) => entry_hash);
      // The first of both is of the moment of its entry.
      const timestamp = formatTimestamp(parseTimestamp(made[n]!.timestamp) + (n - 1) * micros);
      return { ...bare(n, made), head: signedHead(digests, { key, fingerprint: operator.fingerprint, timestamp }) };
    });
    const adding = writer.add(items);
    if (isTaken) expect(await adding).toEqual([]);
    else
      await expect(adding).rejects.toMatchObject({
        code: "invalid-input",
        message: expect.stringContaining("The tree head is earlier than the head before it, or than its entry."),
        details: [{ path: "/1/head" }],
      });
    expect(writer.size).toBe(isTaken ? 3 : 1);
  },
);

test("what is written is what was verified, though the caller writes to its items meanwhile", async () => {
  const { writer, path } = await opened();
  const items = [headed(0), headed(1)].map((item) => ({ ...item, head: { ...item.head! } }));
  const adding = writer.add(items);
  for (const { entry, head } of items) {
    entry.fill(0);
    Object.assign(head, { signature: headed(2).head!.signature, timestamp: "2099-01-01T00:00:00.000000Z" });
  }
  expect(await adding).toEqual([]);
  await writer.close();
  const { log } = await openTestLog({ path, signer: operator });
  expect(await log.verify()).toMatchObject({ valid: true, entry_count: 2, errors: [] });
});

test("a head that is made now is not earlier than the one that was just added", async () => {
  const { writer } = await opened();
  const FUTURE = 7_000_000_000_000_000;
  await writer.add([headed(0, FUTURE)]);
  await writer.seal(bare(1), operator);
  expect(writer.end?.head).toMatchObject({ tree_size: 2, timestamp: headed(0, FUTURE).head!.timestamp });
});

test("a log of an older format is brought up to date by its own operator alone", async () => {
  const { writer, path } = await opened();
  await writer.add([bare(0)]);
  await writer.close();
  const change = async (format?: number) => {
    const store = openStore({ path, mapSize: MAP_SIZE });
    const row = { ...store.get("meta", "log")!, ...(format && { format }) };
    const after = store.position().sequence;
    const rows = format ? ([{ table: "meta", key: "log", row }] as const) : [];
    await store.commit({ after, position: null, batches: [], rows, tiles: [] });
    await store.close();
    return row.format;
  };
  await change(FORMAT - 1);
  const operatorKey = testOperator.public.pem;
  await expect(openHistory({ path, operatorKey, mapSize: MAP_SIZE })).rejects.toMatchObject({ code: "wrong-operator" });
  expect(await change()).toBe(FORMAT - 1);
  // Neither the lock nor the files stay open.
  const { writer: again } = await opened(path);
  expect(again.size).toBe(1);
  await again.close();
  expect(await change()).toBe(FORMAT);
});

test("a wrong signature is found by the pool as well as by this thread, and named by its item", async () => {
  const { head } = headed(1);
  const signature = Buffer.from(head!.signature, "base64");
  signature[5]! ^= 1;
  const wrong = { ...headed(1), head: { ...head!, signature: signature.toString("base64") } };
  for (const options of [{}, { pool: testPool }]) {
    const { writer } = await opened(temporaryFolder(), options);
    await expect(writer.add([headed(0), wrong, headed(2)])).rejects.toMatchObject({
      code: "invalid-signature",
      message: "Item 1: The tree head's signature does not verify.",
      details: [{ path: "/1/head" }],
    });
    expect([writer.size, writer.lastId, writer.lastHash, writer.end]).toEqual([0, 0, null, null]);
    await writer.add([headed(0)]);
    await expect(writer.add([wrong])).rejects.toMatchObject({ details: [{ path: "/0/head" }] });
    await writer.add([headed(1)]);
    expect([writer.size, writer.lastId, writer.lastHash]).toEqual([2, 2, entries[1]!.entry_hash]);
  }
});

test("the newest entry on disk counts after the log was opened again", async () => {
  const { writer, path } = await opened();
  await writer.add(entries.slice(0, 3).map((_, n) => bare(n)));
  expect(writer.end).toBeNull();
  await writer.close();
  const { writer: again } = await opened(path);
  expect([again.size, again.lastId, again.lastHash]).toEqual([3, 3, entries[2]!.entry_hash]);
  const back = chain([{ chain_version: 2, timestamp: momentNumber(0) }], entries[2]!);
  await expect(again.add([bare(0, back)])).rejects.toThrow("earlier than that of the entry before");
  expect(await again.add([bare(3)])).toEqual([
    { leafIndex: 3, id: 4, code: "v1-after-v2", message: "A version 1 entry follows a version 2 entry." },
  ]);
});

test("what is added is what the caller gave, whatever becomes of the caller's bytes while it is checked and written", async () => {
  const { writer, path } = await opened(temporaryFolder(), { pool: testPool });
  const items = [headed(0), headed(1)];
  const proof = Buffer.from("a proof that cannot be read");
  const adding = writer.add(items.map((item) => ({ ...item, otsProof: proof })));
  for (const { entry } of items) entry.fill(0x20);
  proof.fill(0x20);
  await adding;
  await writer.add([bare(2)]);
  await writer.close();
  const store = openStore({ path, mapSize: MAP_SIZE });
  const stored = [0, 1, 2].map((index) => {
    const batch = store.batchAt(index)!;
    return Buffer.from(batch.entry(index - batch.firstIndex));
  });
  await store.close();
  expect(stored).toEqual([0, 1, 2].map((n) => Buffer.from(bare(n).entry)));
});

test("calls are answered in their order, one that fails does not stop the next, and none is taken once it is closed", async () => {
  const { writer } = await opened();
  expect(await writer.add([])).toEqual([]);
  const outcomes = Promise.allSettled([
    writer.add([bare(0)]),
    writer.add([bare(2)]),
    writer.add([bare(1)]),
    writer.add([bare(2), bare(3)]),
  ]);
  const closing = writer.close();
  await expect(writer.add([])).rejects.toMatchObject({ code: "closed", message: "The log is closed." });
  expect((await outcomes).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
  await closing;
  expect(writer.size).toBe(4);
});

describe("the log's own row", () => {
  async function meta(path: string) {
    const store = openStore({ path, mapSize: MAP_SIZE });
    const row = store.get("meta", "log")!;
    await store.close();
    return row;
  }

  test("says that heads are missing, once an entry without one follows a head", async () => {
    const { writer, path } = await opened();
    for (const item of [bare(0), bare(1), headed(2), headed(3)]) await writer.add([item]);
    await writer.close();
    expect(await meta(path)).not.toHaveProperty("sparse_heads");
    const { writer: again } = await opened(path);
    await again.add([bare(4)]);
    await again.close();
    expect(await meta(path)).toMatchObject({ sparse_heads: true, created_at: entries[0]!.timestamp });
    expect(await meta(path)).not.toHaveProperty("first_key_id");
  });

  test("keeps an earlier time of its making than that of the first entry", async () => {
    const path = `${temporaryFolder()}/log`;
    const { log } = await openTestLog({ path });
    await log.close();
    const { created_at } = await meta(path);
    const late = chain([{ timestamp: "2250-01-01T00:00:00.000000Z" }]);
    await importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, late);
    expect(await meta(path)).toMatchObject({ created_at, key_id: testOperator.fingerprint });
  });
});
