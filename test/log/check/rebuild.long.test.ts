/** What a rebuild restores in a log that is small, and what it leaves alone. */
import { existsSync, lstatSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import type { LogExtent, PrivateCheck } from "#cairnlog/engine/log/check/checks.js";
import { checkLog, type LogCheckOptions, type LogCheckReport } from "#cairnlog/engine/log/check/fsck.js";
import { rebuildLog } from "#cairnlog/engine/log/check/repair.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import { formatTimestamp, systemClock } from "#cairnlog/engine/log/state/clock.js";
import { addTitleTerms, noProjection } from "#cairnlog/engine/log/state/projection.js";
import { Postings } from "#cairnlog/engine/store/postings/postings.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import type { LogMeta } from "#cairnlog/engine/store/schema/rows.js";
import { FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import type { TreeHead } from "#cairnlog/engine/verify/tree/treehead.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator, testPool } from "../harness.js";
import { chain } from "../history/entries.js";
import { runIn } from "../inline.js";
import { replaceInBatch, tamper } from "../tamper.js";

const EVENT = { id: 1, leafIndex: 0, timestamp: formatTimestamp(0), event_type: "note" };
/** The first bytes of a map with two members. */
const NO_ROW = Buffer.from([0x82, 0xa1]);
const events = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ event_type: "note", payload: { n, tags: ["all"] } }));

async function builtLog(...counts: number[]): Promise<string> {
  const { log, path } = await openTestLog();
  for (const count of counts) await log.append(events(count));
  await log.close();
  return path;
}

/** The files below a folder that this process has open, removed ones too. */
const openIn = (folder: string): string[] =>
  readdirSync("/proc/self/fd")
    .map((fd) => join("/proc/self/fd", fd))
    .filter((link) => lstatSync(link, { throwIfNoEntry: false }))
    .map((link) => readlinkSync(link))
    .filter((file) => file.startsWith(`${folder}/`));

async function withStore<T>(
  path: string,
  options: Partial<LogCheckOptions>,
  work: (store: Store, options: LogCheckOptions) => Promise<T>,
): Promise<T> {
  const store = openStore({ path, mapSize: MAP_SIZE });
  const fixed = { path, mapSize: MAP_SIZE, projection: noProjection, pool: testPool };
  try {
    return await work(store, { ...fixed, operatorKey: testOperator.public.pem, ...options });
  } finally {
    await store.close();
    expect(existsSync(join(path, "scratch"))).toBe(false);
    expect(openIn(join(path, "scratch"))).toEqual([]);
  }
}
const check = (path: string, options: Partial<LogCheckOptions> = {}) =>
  withStore(path, options, (store, all) => checkLog(store, all));
const rebuild = (path: string, options: Partial<LogCheckOptions> = {}) =>
  withStore(path, options, async (store, { signal, ...all }) =>
    rebuildLog(store, await checkLog(store, all), signal ? { ...all, signal } : all),
  );
const said = ({ differences }: LogCheckReport) => differences.map(({ message }) => message);
const metaOf = (path: string) => withStore(path, {}, async (store) => store.get("meta", "log"));

async function changeMeta(path: string, change: object): Promise<void> {
  await withStore(path, {}, (store) => {
    const row = { ...store.get("meta", "log"), ...change };
    const rows = [{ table: "meta", key: "log", row }] as const;
    const after = store.position().sequence;
    return store.commit({ after, position: null, batches: [], rows, tiles: [] });
  });
}

/** A check of private rows that finds nothing, and the ends of logs that it was told. */
function endsTold() {
  const ends: LogExtent[] = [];
  const told: PrivateCheck = (_, end) => {
    ends.push(end);
    return [];
  };
  return { ends, privateChecks: [told] };
}

const whole = { ok: true, counts: { entries: 0, derived: 0, private: 0 }, differences: [] };

test("lost, changed and surplus rows, tiles and postings are all restored, however many there are", async () => {
  const path = join(temporaryFolder(), "log");
  // Every second id is left out, so each entry but the first has a row.
  const entries = chain(Array.from({ length: 1300 }, (_, n) => ({ id: 2 * n + 1, payload: { n, tags: ["all"] } })));
  await importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, entries);
  const { log } = await openTestLog({ path });
  await runIn(log, (transaction) => {
    for (let n = 1; n <= 1030; n++) transaction.put("seams", 2 * n + 1, undefined);
    for (let n = 1031; n < 1060; n++) transaction.put("seams", 2 * n + 1, { leaf_index: 0, starts_at: 0, before: 0 });
    for (let n = 0; n < 515; n++) transaction.put("keys", `planted ${n}`, {} as never);
  });
  await log.close();
  await tamper(path, "tiles", async (tiles) => {
    await tiles.remove([1, 0, 1]);
    await tiles.put([2, 0, 0], Buffer.alloc(8192));
    await tiles.put([2, 0, 99], Buffer.alloc(8192));
  });
  await tamper(join(path, "postings"), "runs", (runs) => runs.put(1, NO_ROW));
  const report = await check(path);
  expect(report.counts).toEqual({ entries: 0, derived: 1030 + 29 + 515 + 3 + 1, private: 0 });
  expect(report.differences).toHaveLength(1000);
  // The postings are not compared where their file is left out.
  expect((await check(path, { skipsPostings: true })).counts.derived).toBe(report.counts.derived - 1);
  expect(await rebuild(path)).toMatchObject({ ...whole, entries: 1300 });

  const { log: again } = await openTestLog({ path });
  expect(again.find({ tags: ["all"] }, 0, 1).total).toBe(1300);
  expect(again.stateDifferences()).toEqual([]);
  expect((await again.append(events(1)[0]!)).leaf_index).toBe(1300);
  await again.close();
});

test("a rebuild of a sound log changes nothing", async () => {
  const path = await builtLog(3, 300);
  const before = await metaOf(path);
  expect(await rebuild(path)).toMatchObject({ ...whole, entries: 303 });
  expect(await metaOf(path)).toEqual(before);
  expect(await check(path, { skipsPostings: true })).toMatchObject({ ...whole, entries: 303 });
});

test.each(["words", "titles"] as const)("the runs of %s that no entry makes are gone after a rebuild", async (runs) => {
  const path = await builtLog(3);
  await withStore(path, {}, async (store) => {
    const postings = new Postings(store[runs]);
    const terms = new TermTable();
    addTitleTerms({ ...EVENT, payload: { document_title: "nobody's" } }, terms);
    postings.add(3, terms);
    await postings.fileAll();
    await postings.close();
  });
  if (runs === "words") expect((await check(path)).counts).toMatchObject({ derived: 1 });
  expect(await rebuild(path)).toMatchObject(whole);
  await withStore(path, {}, async (store) => expect(store[runs].runIds()).toEqual([]));
});

describe("damaged entries", () => {
  const damaged = async () => {
    const path = await builtLog(2, 2);
    await tamper(path, "batches", replaceInBatch(2, '"id":4,', '"ix":4,'));
    return path;
  };

  test("are not restored, and nothing else is changed", async () => {
    const path = await damaged();
    const before = await metaOf(path);
    await expect(rebuild(path)).rejects.toMatchObject({
      code: "corrupt-log",
      message: expect.stringMatching(/^Entries or heads are damaged, and cannot be restored .* Nothing was changed\./),
    });
    expect(await metaOf(path)).toEqual(before);
  });

  test("leave open whether private rows lie beyond the end, and what root was shown", async () => {
    const path = await damaged();
    const { ends, privateChecks } = endsTold();
    const head = { tree_size: 3, root_hash: "ab".repeat(32), tree_version: 2 } as TreeHead;
    const report = await check(path, { published: head, privateChecks });
    expect(report.ok).toBe(false);
    expect(ends).toEqual([{ size: 4, lastId: Number.POSITIVE_INFINITY }]);
    expect(report.counts).toMatchObject({ derived: 0, private: 0 });
    expect(said(report)[0]).toMatch(/^tree size 4: The entry at leaf 3 is not a valid entry: /);
    expect(said(report).join()).not.toContain("signed and shown");
    const shown = await check(await builtLog(2, 2), { published: head });
    expect(said(shown)).toEqual(["The head of 3 entries that was signed and shown is not the one in this log."]);
  });
});

test("the checks of private rows know the end of the log", async () => {
  const { ends, privateChecks } = endsTold();
  const path = join(temporaryFolder(), "log");
  await importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, chain([{}, { id: 40 }]));
  await check(path, { privateChecks });
  const told: unknown[] = [];
  const progress = (...stage: unknown[]) => told.push(stage);
  expect(await check(await builtLog(), { privateChecks, progress })).toMatchObject({ ...whole, entries: 0 });
  // There was nothing to do.
  expect(told).toEqual([]);
  const contradicts: PrivateCheck = () => ["Two rows contradict each other."];
  expect(await check(path, { privateChecks: [contradicts] })).toMatchObject({
    ...{ ok: false, counts: { entries: 0, derived: 0, private: 1 } },
    differences: [{ area: "private", message: "Two rows contradict each other." }],
  });
  expect(ends).toEqual([
    { size: 2, lastId: 40 },
    { size: 0, lastId: 0 },
  ]);
});

test("an empty log whose time of making is lost was made now", async () => {
  const path = await builtLog();
  await changeMeta(path, { created_at: "once" });
  const before = formatTimestamp(systemClock());
  expect(said(await check(path))).toEqual([expect.stringMatching(/^meta: the stored creation time "once" is not/)]);
  expect(await rebuild(path)).toMatchObject(whole);
  expect((await metaOf(path))!.created_at >= before).toBe(true);
});

test("postings are not compared with a log that lacks entries", async () => {
  const path = await builtLog(512, 500, 100);
  await tamper(path, "batches", (batches) => batches.remove(512));
  const report = await check(path);
  expect(report).toMatchObject({ ok: false, entries: 512 });
  expect(said(report)[0]).toBe("The entries 513 to 1012 are missing.");
  expect(said(report).filter((sentence) => sentence.includes("postings"))).toEqual([]);
});

test("a rebuild that is broken off leaves its mark, and the next one removes it", async () => {
  const path = await builtLog(2, 2);
  const signal = AbortSignal.abort(new Error("broken off by the test"));
  await expect(rebuild(path, { signal })).rejects.toThrow("broken off by the test");
  expect(await metaOf(path)).toMatchObject({ rebuilding: true });
  expect(said(await check(path))).toEqual(["meta: a rebuild was interrupted."]);
  expect(await rebuild(path)).toMatchObject(whole);
  expect(await metaOf(path)).not.toHaveProperty("rebuilding");
});

describe("the log's own row", () => {
  const [second, third] = [1, 2].map(() => operatorKey(generatePrivateKey("ed25519")));
  async function rotatedLog(): Promise<string> {
    const path = await builtLog(2);
    await rotateOperatorKey({ path, from: testOperator, to: second!, projection: noProjection });
    await rotateOperatorKey({ path, from: second!, to: third!, projection: noProjection });
    return path;
  }
  const operatorKeyOf = third!.public.pem;

  test("names the newest key and the first one", async () => {
    const path = await rotatedLog();
    const sound = (await metaOf(path))!;
    expect(sound).toMatchObject({ key_id: third!.fingerprint, first_key_id: testOperator.fingerprint });
    for (const [change, sentence] of [
      [
        { key_id: second!.fingerprint },
        `meta: the stored operator key is ${second!.fingerprint}, not ${third!.fingerprint}.`,
      ],
      [
        { first_key_id: second!.fingerprint },
        `meta: the stored first operator key is ${second!.fingerprint}, not ${testOperator.fingerprint}.`,
      ],
      [
        { first_key_id: undefined },
        `meta: the stored first operator key is ${third!.fingerprint}, not ${testOperator.fingerprint}.`,
      ],
    ] as const) {
      await changeMeta(path, { ...sound, ...change });
      expect(said(await check(path, { operatorKey: operatorKeyOf }))).toEqual([sentence]);
      expect(await rebuild(path, { operatorKey: operatorKeyOf })).toMatchObject(whole);
      expect(await metaOf(path)).toEqual(sound);
    }
  });

  test("is made anew with the rotations, whichever of the keys is at hand", async () => {
    for (const key of [testOperator, second!, third!]) {
      const path = await rotatedLog();
      const { created_at } = (await metaOf(path)) as LogMeta;
      await tamper(path, "operatorRotations", (rows) => rows.put(2, NO_ROW));
      await tamper(path, "meta", (rows) => rows.put("log" as never, NO_ROW));
      const options = { operatorKey: key.public.pem };
      expect(said(await check(path, options)).sort()).toEqual([
        "meta: the row cannot be read.",
        "operatorRotations 2 cannot be read.",
      ]);
      expect(await rebuild(path, options)).toMatchObject(whole);
      const restored = (await metaOf(path))!;
      expect(restored).toMatchObject({
        ...{ key_id: third!.fingerprint, first_key_id: testOperator.fingerprint },
        format: FORMAT,
      });
      // The time of the first head, which is not before the log was made.
      expect(restored.created_at >= created_at).toBe(true);
      const { log } = await openTestLog({ path, signer: third! });
      expect(log.treeHead(1)!.timestamp).toBe(restored.created_at);
      await log.close();
    }
  });
});
