/** One stretch of a log whose data file was changed: every finding, with its place and its words, and no other. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkChunk } from "#cairnlog/engine/log/check/chunk.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { Operators } from "#cairnlog/engine/log/operator/operators.js";
import { parseTimestamp } from "#cairnlog/engine/log/state/clock.js";
import { Batch, packBatch } from "#cairnlog/engine/store/schema/batch.js";
import { openStore, type TileKey } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator } from "../harness.js";
import { chain as chained } from "../history/entries.js";
import { type Bytes, headsOf, replaceHeads, signedAt, tamper } from "../tamper.js";

const { chain } = Operators.of(testOperator.public);
type Task = Partial<Parameters<typeof checkChunk>[1]>;
/** Where a finding is: the id of an entry, or the size of a tree; its code; and its sentence. */
type Found = [place: string, code: string, message?: unknown];

/** A closed log, with one batch for each of these numbers of entries. Its clock counts microseconds. */
async function builtLog(...counts: number[]): Promise<string> {
  let now = 1_700_000_000_000_000;
  const { log, path } = await openTestLog({ clock: () => now++ });
  let n = 0;
  for (const count of counts)
    await log.append(Array.from({ length: count }, () => ({ event_type: "note", payload: { n: n++ } })));
  await log.close();
  return path;
}

/** The findings about the stretch [from, to) of the first `to` entries, unless the task says otherwise. */
async function findings(path: string, from: number, to: number, task: Task = {}) {
  const store = openStore({ path, mapSize: MAP_SIZE });
  const { errors, warnings } = checkChunk(store, { from, to, size: to, operators: chain, ...task });
  await store.close();
  expect(warnings).toEqual([]);
  return errors.map(({ id, tree_size, code, message }): Found => {
    expect((id === null) !== (tree_size === null)).toBe(true);
    return [id === null ? `size ${tree_size}` : `entry ${id}`, code, message];
  });
}
const places = async (...args: Parameters<typeof findings>) =>
  (await findings(...args)).map(([place, code]) => `${place}: ${code}`);

/** Replaces the entry at a leaf; its digest in the batch stays. */
const respell = (path: string, first: number, leafIndex: number, change: (entry: Record<string, unknown>) => object) =>
  tamper(path, "batches", async (db) => {
    const batch = new Batch(first, db.get(first)!);
    const entries = Array.from({ length: batch.count }, (_, i) => batch.entry(i));
    entries[leafIndex - first] = Buffer.from(JSON.stringify(change(JSON.parse(batch.text(leafIndex - first)))));
    await db.put(first, packBatch(entries, batch.digests, headsOf(batch)));
  });
const withId = (id: unknown) => (entry: object) => ({ ...entry, id });
const removeBatch = (first: number) => (db: Bytes) => db.remove(first);
const overwriteBatch = (first: number) => (db: Bytes) => db.put(first, Buffer.from("no batch"));

test("nothing is found in a sound log, wherever a stretch begins and ends", async () => {
  const path = await builtLog(2, 255, 3, 300);
  for (const size of [1, 256, 257, 560])
    for (const from of [0, 1, 255, 256, 300, 512])
      if (from < size) expect(await findings(path, from, size), `${from} to ${size}`).toEqual([]);
  for (const to of [255, 256, 512]) expect(await findings(path, 3, to, { size: 560 })).toEqual([]);
});

test.each([
  ["is gone", removeBatch(2)],
  ["is overwritten", overwriteBatch(2)],
])("entries of a batch that %s cannot be read, and the next one is not compared with them", async (_, damage) => {
  const path = await builtLog(2, 2, 2);
  await tamper(path, "batches", damage);
  const missing = [3, 4].map((size) => [
    `size ${size}`,
    "missing-entry",
    `The entry at leaf ${size - 1} cannot be read.`,
  ]);
  const found = await findings(path, 0, 6);
  expect(found.slice(0, 2)).toEqual(missing);
  expect(found.filter(([place]) => place.startsWith("entry"))).toEqual([]);
  // The stretch behind it begins without a predecessor.
  expect((await findings(path, 4, 6)).filter(([place]) => place.startsWith("entry"))).toEqual([]);
});

const notNext = (id: number, leaf: number): Found => [
  `entry ${id}`,
  "id-mismatch",
  `The id does not follow that of the entry before, at leaf ${leaf}.`,
];
const notAscending = (id: number): Found => [`entry ${id}`, "id-mismatch", "The id does not ascend."];

test.each<[string, number, number, Found[]]>([
  ["the first one begins with 2", 0, 2, [notNext(2, 0), notNext(2, 1), notAscending(2)]],
  ["one is given twice", 2, 2, [notNext(2, 2), notAscending(2), notNext(4, 3)]],
  ["one is left out at the end", 5, 7, [notNext(7, 5)]],
  ["one is lower than those before it", 4, 1, [notNext(1, 4), notAscending(1), notNext(6, 5)]],
])("ids are dense: %s", async (_, leafIndex, id, expected) => {
  const path = await builtLog(2, 2, 2);
  await respell(path, leafIndex - (leafIndex % 2), leafIndex, withId(id));
  expect(await findings(path, 0, 6)).toEqual(expected);
});

test("an id may be left out where a row of that id and place says so", async () => {
  const path = await builtLog(2, 2, 2);
  await respell(path, 4, 5, withId(9));
  const seams = async (key: number, leaf_index: number) => {
    const store = openStore({ path, mapSize: MAP_SIZE });
    const row = { leaf_index, starts_at: 0, before: 0 };
    const rows = [{ table: "seams", key, row }] as const;
    const after = store.position().sequence;
    await store.commit({ after, position: null, batches: [], rows, tiles: [] });
    await store.close();
  };
  await seams(8, 5);
  await seams(9, 4);
  expect(await findings(path, 0, 6)).toEqual([notNext(9, 5)]);
  await seams(9, 5);
  expect(await findings(path, 0, 6)).toEqual([]);
});

test("an entry that is none is named by its place, and the next one is not compared with it", async () => {
  const path = await builtLog(2, 2, 2);
  await respell(path, 2, 3, withId("4"));
  const malformed = expect.stringMatching(/^The entry at leaf 3 is not a valid entry: ./);
  const found = await findings(path, 0, 6);
  expect(found[0]).toEqual(["size 4", "malformed-entry", malformed]);
  expect(found.filter(([place]) => place.startsWith("entry"))).toEqual([]);
});

test("a changed link, digest or time is named at its entry, also at the beginning of a stretch", async () => {
  const path = await builtLog(2, 2, 2);
  await respell(path, 2, 2, (entry) => ({ ...entry, previous_hash: "ab".repeat(32) }));
  for (const from of [0, 2]) {
    const found = await places(path, from, 6);
    expect(found.filter((place) => place.startsWith("entry"))).toEqual([
      "entry 3: hash-mismatch",
      "entry 3: digest-mismatch",
      "entry 3: broken-link",
    ]);
  }
  const earlier = await builtLog(2, 2, 2);
  await respell(earlier, 2, 2, (entry) => ({ ...entry, timestamp: "2001-01-01T00:00:00.000000Z" }));
  for (const from of [0, 2])
    expect((await findings(earlier, from, 6)).slice(2, 4)).toEqual([
      ["entry 3", "seam-missing", "The entry is earlier than the one before, and no stored row allows it."],
      ["entry 3", "timestamp-decrease", "The timestamp is earlier than that of the entry before."],
    ]);
  const digested = await builtLog(2, 2, 2);
  await respell(digested, 2, 3, (entry) => ({ ...entry, entry_hash: "ab".repeat(32) }));
  const codes = await places(digested, 0, 6);
  expect(codes).toContain("entry 4: digest-mismatch");
  expect(codes).toContain("entry 5: broken-link");
});

test("an imported entry whose time cannot be read any more is earlier than any other", async () => {
  const path = join(temporaryFolder(), "log");
  await importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, chained([{}, {}, {}]));
  await respell(path, 0, 1, (entry) => ({ ...entry, timestamp: "noon" }));
  expect(await places(path, 0, 3)).toEqual(["entry 2: seam-missing"]);
});

test("a head is compared with the time of its own entry, also in a stretch that begins with it", async () => {
  const path = await builtLog(1, 1);
  const { log } = await openTestLog({ path });
  const moment = parseTimestamp(log.entry(2)!.timestamp);
  await log.close();
  await replaceHeads(path, 1, async ([head]) => [await signedAt(head!.root, 2, moment - 1)]);
  for (const from of [0, 1])
    expect(await findings(path, from, 2)).toContainEqual([
      "size 2",
      "timestamp-decrease",
      "The head is earlier than its entry.",
    ]);
});

test("what is unusual in imported history is named at its entry, and is no error", async () => {
  const path = join(temporaryFolder(), "log");
  const unknown = { algorithm: "md5", digest_hex: "ab".repeat(16), is_primary: false };
  const entries = chained([
    { timestamp: "2020-01-01T00:00:00Z", chain_version: 2 },
    { timestamp: "2020-01-01 00:01", chain_version: null },
    { timestamp: "2020-01-02" },
    { timestamp: "2020-01-03" },
  ]).map((entry, i) => (i === 3 ? { ...entry, entry_hashes: [...entry.entry_hashes, unknown] } : entry));
  await importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, entries);
  const { log } = await openTestLog({ path });
  expect(await log.verify()).toEqual({
    ...{ valid: true, entry_count: 4, errors: [] },
    warnings: [
      { id: 2, tree_size: null, code: "v1-after-v2", message: "A version 1 entry follows a version 2 entry." },
      { id: 4, tree_size: null, code: "unknown-digest", message: expect.stringContaining("md5") },
    ],
  });
});

test("whether an entry is an event is asked only where every entry must be one", async () => {
  const path = await builtLog(2);
  expect(await places(path, 0, 2, { checksEvents: false })).toEqual([]);
  expect(await places(path, 0, 2, { checksEvents: true })).toEqual(["entry 1: wrong-event", "entry 2: wrong-event"]);
});

test("heads may be missing where the log's own row says so, and not where it cannot be read", async () => {
  const path = await builtLog(2, 2, 2);
  await tamper(path, "batches", async (db) => {
    const batch = new Batch(2, db.get(2)!);
    await db.put(2, packBatch([batch.entry(0), batch.entry(1)], batch.digests, null));
  });
  const missing = ["size 3: head-missing", "size 4: head-missing"];
  expect(await places(path, 0, 6)).toEqual(missing);
  expect(await places(path, 2, 6)).toEqual(missing);
  const store = openStore({ path, mapSize: MAP_SIZE });
  const row = { ...store.get("meta", "log")!, sparse_heads: true as const };
  const after = store.position().sequence;
  const rows = [{ table: "meta", key: "log", row }] as const;
  await store.commit({ after, position: null, batches: [], rows, tiles: [] });
  await store.close();
  expect(await places(path, 0, 6)).toEqual([]);
  await tamper(path, "meta", (db) => db.put("log" as never, Buffer.from([0x82, 0xa1])));
  expect(await places(path, 0, 6)).toEqual(missing);
});

test("a head of another key than the operator's is named at its size", async () => {
  const path = await builtLog(1, 1);
  await tamper(path, "batches", async (db) => {
    const batch = new Batch(1, db.get(1)!);
    const heads = { ...headsOf(batch)!, keyId: Buffer.alloc(32, 9) };
    await db.put(1, packBatch([batch.entry(0)], batch.digests, heads));
  });
  expect(await findings(path, 0, 2)).toEqual([
    ["size 2", "foreign-head", "The head is signed by another key than the operator's."],
  ]);
});

/** Tiles of 560 entries; each is read by the stretches that write it or begin on its peaks. */
const TILES: [key: TileKey, at: number, from: number, isFound: boolean][] = [
  [[1, 0, 0], 0, 0, true],
  [[2, 0, 0], 255 * 32 + 31, 0, true],
  [[2, 0, 0], 0, 300, false],
  [[1, 0, 1], 255 * 32 + 31, 0, true],
  [[2, 0, 1], 100 * 32, 300, true],
  [[1, 1, 0], 0, 0, true],
  [[2, 1, 0], 32 + 31, 0, true],
  [[2, 1, 0], 32, 300, true],
];
test("a changed tile is named by every stretch whose entries it follows from, and by no other", async () => {
  const path = await builtLog(512, 48);
  for (const [key, at, from, isFound] of TILES) {
    const [version, level, index] = key;
    const flip = (db: Bytes) => {
      const tile = Buffer.from(db.get(key)!);
      tile[at]! ^= 1;
      return db.put(key, tile);
    };
    await tamper(path, "tiles", flip);
    const message = `Tile ${index} of level ${level} (tree version ${version}) does not follow from the entries.`;
    const found = await findings(path, from, 560);
    const itself = found.filter(([, , said]) => said === message);
    expect(itself, message).toEqual(isFound ? [["size 560", "tile-mismatch", message]] : []);
    // A changed hash may be a peak, too, from which roots follow.
    const others = `The tiles of tree version ${version} do not follow from the entries.`;
    for (const [place, code, said] of found)
      if (code !== "root-mismatch") {
        expect([place, code]).toEqual(["size 560", "tile-mismatch"]);
        expect([message, others]).toContain(said);
      }
    if (!isFound) expect(found).toEqual([]);
    await tamper(path, "tiles", flip);
  }
  expect(await findings(path, 0, 560)).toEqual([]);
});
