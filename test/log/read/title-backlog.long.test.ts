/** Titles in a log that an older version filed: the words of its entries are filed in the background, once. */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import type { EventInput } from "#cairnlog/engine/index.js";
import { catchUp } from "#cairnlog/engine/log/apply/derive.js";
import { checkLog } from "#cairnlog/engine/log/check/fsck.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import { EntryReader } from "#cairnlog/engine/log/read/reader.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import { FLUSH_ENTRIES, Postings } from "#cairnlog/engine/store/postings/postings.js";
import { textPrefixTerm } from "#cairnlog/engine/store/postings/term.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { foldedAsBefore, titleWords } from "#cairnlog/engine/verify/events/titles.js";
import { storedRuns } from "../../store/postings/storedruns.js";
import { MAP_SIZE, openTestLog, openTestReader, temporaryFolder, testOperator } from "../harness.js";

const titled = (document_title: string): EventInput => ({ event_type: "note", payload: { document_title } });
const found = (log: { match: Awaited<ReturnType<typeof openTestLog>>["log"]["match"] }, title: string) =>
  log.match({ title }, 0, 200).indexes;

/** What is filed about a closed log of `count` entries. @param hasWords whether with the words of titles, in the form of then */
async function filedTerms(path: string, count: number, hasWords: boolean): Promise<TermTable> {
  const store = openStore({ path, mapSize: MAP_SIZE });
  // A log that is closed leaves a few entries to be filed at its next start.
  const postings = new Postings(store.postings);
  catchUp(postings, new EntryReader(store), count, noProjection);
  await postings.fileAll();
  await postings.close();
  const terms = new TermTable();
  for (const run of storedRuns(store.postings))
    for (let block = 0; block * 681 < run.count; block++) {
      const records = Buffer.from(store.postings.block(run.id, block)!);
      for (let at = 0; at < records.length; at += 24)
        if (records[at] !== POSTING.titleWord)
          terms.add(records.toString("latin1", at, at + 17), records.readUIntBE(at + 18, 6));
    }
  if (hasWords) addEarlierWords(new EntryReader(store), 0, count, terms);
  await store.close();
  return terms;
}

/** Adds the words of titles as an older version folded them. */
function addEarlierWords(entries: EntryReader, from: number, to: number, terms: TermTable): void {
  for (let index = from; index < to; index++)
    for (const word of titleWords(entries.entry(index)!.payload!, foldedAsBefore))
      terms.add(textPrefixTerm(POSTING.earlierTitleWord, word), index);
}

/**
 * Makes the postings of a closed log of `count` entries what an older version makes of them: one run that does not say whether
 * it has the words of titles.
 * @param hasWords it has those that were there: an older version merges every run that it finds
 * @param titled what the run says of them
 */
async function fileAsOlderVersion(path: string, count: number, hasWords: boolean, titled = false): Promise<void> {
  const terms = await filedTerms(path, count, hasWords);
  const store = openStore({ path, mapSize: MAP_SIZE });
  await store.postings.removeRuns();
  const postings = new Postings(store.postings);
  postings.add(count, terms);
  await postings.fileAll();
  await postings.close();
  for (const { id, folded: _, ...run } of storedRuns(store.postings)) {
    const fences = Buffer.concat(
      Array.from({ length: run.fences.length / 4 }, (_, block) =>
        Buffer.from(store.postings.block(id, block)!.subarray(0, 24)),
      ),
    );
    await store.postings.writeRun(id, [], { ...run, fences, ...(titled ? { titled } : {}) }, []);
  }
  await store.close();
}

async function olderLog(count: number): Promise<string> {
  const path = temporaryFolder();
  const { log } = await openTestLog({ path });
  await log.append(Array.from({ length: count }, (_, i) => titled(`older ${i}`)));
  await log.close();
  await fileAsOlderVersion(path, count, false);
  return path;
}

/** Asserts that fsck finds nothing wrong with a closed log. */
async function expectSound(path: string): Promise<void> {
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
  expect(report.differences).toEqual([]);
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
  const writer = { enqueue: log.enqueue.bind(log), signHead: () => log.signHead(), verify: () => log.verify() };
  log.feed((message) => messages.push(structuredClone(message)));
  const follower = openLogFollower({ path, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE, writer });
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
  await expectSound(path);
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

test("a full disk is waited for: readers, too, find all titles when there is room again, without another start", async () => {
  const count = FLUSH_ENTRIES + 300;
  const path = await olderLog(count);
  const { statfsSync } = fs;
  const setRoom = (look: typeof statfsSync) => {
    fs.statfsSync = look;
    syncBuiltinESMExports();
  };
  onTestFinished(() => setRoom(statfsSync));
  setRoom((() => ({ blocks: 1000, bavail: 1, bsize: 4096 })) as unknown as typeof statfsSync);
  const { log } = await openTestLog({ path });
  // The writer's thread has them in memory; the runs that readers need have no room.
  expect(await filed(log, "4000")).toEqual([4000]);
  await sleep(100);
  setRoom(statfsSync);
  const reader = await openTestReader(path);
  for (const index of [4000, count - 1])
    expect(await filed(reader, `older ${index}`, () => reader.refresh())).toEqual([index]);
  expect(log.match({ title: "older" }, 0, 0).total).toBe(count);
  await log.close();
  await expectSound(path);
});

test.each([
  ["without the words of titles", false],
  ["and merged with those of newer runs", true],
])("what an older version filed afterwards, %s, is filed by its titles, and found once", async (_, hasWords) => {
  const path = await olderLog(300);
  const first = await openTestLog({ path });
  expect(await filed(first.log, "older 299")).toEqual([299]);
  await first.log.append(Array.from({ length: 200 }, (_, i) => titled(`newer ${i}`)));
  await first.log.close();
  await fileAsOlderVersion(path, 500, hasWords);

  const { log } = await openTestLog({ path });
  expect(await filed(log, "newer 199")).toEqual([499]);
  expect(log.match({ title: "older" }, 0, 0).total).toBe(300);
  expect(log.match({ title: "newer" }, 0, 0).total).toBe(200);
  expect(found(log, "newer 1").filter((index) => index === 301)).toEqual([301]);
  await log.append(titled("newest"));
  expect(found(log, "newest")).toEqual([500]);
  await log.close();
  const again = await openTestLog({ path });
  expect(found(again.log, "newer 199")).toEqual([499]);
  await again.log.close();
  await expectSound(path);
});

describe("titles whose words an older version folded in another way", () => {
  const TITLES = ["Straße", "Ὀδυσσεύς", "Zeit\u00adung", "plain"];
  /** Each finds one title in four: as the older version folded it, and as this one does. */
  const BEFORE = ["straße", "ὀδυσ", "ung", "pla"];
  const NOW = ["strasse", "ΟΔΥΣΣ", "zeitung", "PLAIN"];
  const count = FLUSH_ENTRIES + 300;
  const each = (kind: number) => Array.from({ length: count / 4 }, (_, i) => 4 * i + kind);
  const foundBy = (log: Parameters<typeof found>[0], title: string) => log.match({ title }, 0, count).indexes;

  const older = async (): Promise<string> => {
    const path = temporaryFolder();
    const { log } = await openTestLog({ path });
    await log.append(Array.from({ length: count }, (_, i) => titled(TITLES[i % 4]!)));
    await log.close();
    return path;
  };

  /** What a version from before the words of titles left, and the next one filed beside it. */
  const filedApart = async (path: string): Promise<void> => {
    await fileAsOlderVersion(path, count, false);
    const store = openStore({ path, mapSize: MAP_SIZE });
    const words = new Postings(store.titles);
    const terms = new TermTable();
    addEarlierWords(new EntryReader(store), 0, count, terms);
    words.add(count, terms);
    await words.fileAll();
    await words.close();
    await store.close();
  };

  test.each([
    ["with everything else", (path: string) => fileAsOlderVersion(path, count, true, true)],
    ["in runs of their own", filedApart],
  ])("%s: they are found as before until they are filed again, in the background", async (_, file) => {
    const path = await older();
    await file(path);
    const { log } = await openTestLog({ path });
    await log.append(TITLES.map(titled));
    const withNew = (kind: number) => [...each(kind), count + kind];
    // What finds a title now and did before has no gap at any moment, and neither has what is new.
    for (let isFiled = false; !isFiled; await sleep(1)) {
      isFiled = foundBy(log, NOW[0]!).length > count / 4;
      for (const kind of [0, 1, 3]) expect(foundBy(log, BEFORE[kind]!)).toEqual(withNew(kind));
      if (!isFiled) expect(foundBy(log, BEFORE[2]!)).toEqual(each(2));
      expect(foundBy(log, NOW[2]!)).toContain(count + 2);
    }
    for (const [kind, query] of NOW.entries()) expect(foundBy(log, query)).toEqual(withNew(kind));
    // No word begins so any more.
    expect(foundBy(log, BEFORE[2]!)).toEqual([]);
    await log.close();
    await expectSound(path);
    const reader = await openTestReader(path);
    expect(foundBy(reader, NOW[0]!)).toEqual(withNew(0));
  });
});
