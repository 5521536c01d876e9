/** Titles in a log that an older version filed: the words of its entries are filed in the background, once. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import type { EventInput } from "#cairnlog/engine/index.js";
import { checkLog } from "#cairnlog/engine/log/check/fsck.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import { noProjection } from "#cairnlog/engine/log/write/projection.js";
import { FLUSH_ENTRIES, Postings } from "#cairnlog/engine/store/postings/postings.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import { POSTING } from "#cairnlog/engine/store/schema.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openTestLog, openTestReader, temporaryFolder, testOperator } from "../harness.js";

const titled = (document_title: string): EventInput => ({ event_type: "note", payload: { document_title } });
const found = (log: { match: Awaited<ReturnType<typeof openTestLog>>["log"]["match"] }, title: string) =>
  log.match({ title }, 0, 200).indexes;

/** Makes the postings of a closed log what an older version made of it: without words of titles. */
async function asOlderVersion(
  path: string,
  entries: readonly EventInput[],
  addTerms: (store: Store, terms: TermTable) => void,
) {
  const store = openStore({ path, mapSize: MAP_SIZE });
  await store.postings.removeRuns();
  const postings = new Postings(store.postings);
  const terms = new TermTable();
  addTerms(store, terms);
  postings.add(entries.length, terms);
  await postings.fileAll();
  await postings.close();
  for (const { id, titled: _, ...run } of store.postings.runs()) {
    const fences = Buffer.concat(
      Array.from({ length: run.fences.length / 4 }, (_, block) =>
        Buffer.from(store.postings.block(id, block)!.subarray(0, 24)),
      ),
    );
    await store.postings.writeRun(id, [], { ...run, fences }, []);
  }
  await store.close();
}

async function olderLog(count: number) {
  const path = temporaryFolder();
  const { log } = await openTestLog({ path });
  const entries = Array.from({ length: count }, (_, i) => titled(`older ${i}`));
  await log.append(entries);
  const kept = new TermTable();
  await log.close();
  const source = openStore({ path, mapSize: MAP_SIZE });
  const all = new Postings(source.postings);
  for (const run of source.postings.runs())
    for (let block = 0; block * 681 < run.count; block++) {
      const records = Buffer.from(source.postings.block(run.id, block)!);
      for (let at = 0; at < records.length; at += 24)
        if (records[at] !== POSTING.titleWord)
          kept.add(records.toString("latin1", at, at + 17), records.readUIntBE(at + 18, 6));
    }
  await all.close();
  await source.close();
  await asOlderVersion(path, entries, (_, terms) => terms.addAll(kept));
  return path;
}

/** Waits until older entries are filed. @param look called before each try */
const filed = async (log: Parameters<typeof found>[0], word: string, look = () => {}): Promise<readonly number[]> => {
  for (;;)
    try {
      look();
      return found(log, word);
    } catch (error) {
      expect(error).toMatchObject({ code: "indexing", retryAfter: 5 });
      await sleep(5);
    }
};

test("entries that an older version filed are filed by their titles in the background, once", async () => {
  const count = FLUSH_ENTRIES + 300;
  const path = await olderLog(count);
  const { log } = await openTestLog({ path });
  const messages: Parameters<ReturnType<typeof openLogFollower>["follow"]>[0][] = [];
  const writer = { execute: log.execute.bind(log), signHead: () => log.signHead(), verify: () => log.verify() };
  log.feed((message) => messages.push(structuredClone(message)));
  const follower = openLogFollower({ path, operator: testOperator, mapSize: MAP_SIZE, writer });
  const follow = () => {
    for (const message of messages.splice(0)) follower.follow(message);
  };
  // It takes appends at once, and says that it does not know yet.
  await log.append(titled("newer 1"));
  for (const each of [log, follower])
    expect(() => found(each, "4000")).toThrow(expect.objectContaining({ code: "indexing" }));
  expect(await filed(log, "4000")).toEqual([4000]);
  for (const each of [log, follower]) {
    expect(await filed(each, `${count - 1} old`, follow)).toEqual([count - 1]);
    expect(found(each, "new")).toEqual([count]);
    expect(each.match({ title: "older" }, 0, 0).total).toBe(count);
  }
  // New runs have the words, and are not merged with the old ones.
  await log.append(Array.from({ length: FLUSH_ENTRIES }, (_, i) => titled(`newer ${i + 2}`)));
  expect(log.match({ title: "o" }, 0, 0).total).toBe(count);
  await follower.close();
  await log.close();

  const again = await openTestLog({ path });
  // Nothing is left to be filed.
  expect(found(again.log, "older 4000")).toEqual([4000]);
  expect(again.log.match({ title: "newer" }, 0, 0).total).toBe(FLUSH_ENTRIES + 1);
  await again.log.close();
  const pool = createPool(1);
  const store = openStore({ path, mapSize: MAP_SIZE });
  const report = await checkLog(store, {
    path,
    pool,
    projection: noProjection,
    operatorKey: testOperator.public.pem,
    mapSize: MAP_SIZE,
  });
  await pool.close();
  await store.close();
  expect(report.counts).toEqual({ entries: 0, derived: 0, private: 0 });
  const reader = await openTestReader(path);
  expect(found(reader, "older 4000")).toEqual([4000]);
});

test("filing goes on where a log was closed", async () => {
  const path = await olderLog(FLUSH_ENTRIES + 300);
  for (let i = 0; i < 3; i++) {
    const { log } = await openTestLog({ path });
    await log.close();
  }
  const { log } = await openTestLog({ path });
  expect(await filed(log, "4001")).toEqual([4001]);
});
