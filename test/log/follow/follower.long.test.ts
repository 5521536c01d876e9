/**
 * A follower shows what the writer shows, whenever the messages reach it and however many come at once: entries, heads,
 * proofs and postings, also while runs are made and merged.
 */
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import type { FeedMessage } from "#cairnlog/engine/log/follow/feed.js";
import type { LogFollower, WriterLink } from "#cairnlog/engine/log/follow/follower.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { FLUSH_ENTRIES } from "#cairnlog/engine/store/postings/postings.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openFaultyLog, openTestLog, testOperator } from "../harness.js";

const followers = new Set<LogFollower>();
afterEach(async () => {
  for (const follower of followers) await follower.close();
  followers.clear();
});

/** A follower of a log, which gets the messages when `hear` is called: copies, as another thread would. */
function follow(log: LogWriter, path: string) {
  const sent: FeedMessage[] = [];
  log.feed((message) => sent.push(structuredClone(message)));
  let follower: LogFollower | undefined;
  const writer: WriterLink = {
    enqueue: (...given) => log.enqueue(...given),
    signHead: () => log.signHead(),
    verify: () => log.verify(),
  };
  const open = () => {
    follower = openLogFollower({ path, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE, writer });
    followers.add(follower);
    return follower;
  };
  return {
    open,
    sent,
    hear(count = sent.length) {
      for (const message of sent.splice(0, count)) follower!.follow(message);
    },
  };
}

const event = (n: number) => ({ event_type: `type ${n % 7}`, payload: { n, tags: [`tag ${n % 3}`, `only ${n}`] } });
const appendAll = async (log: LogWriter, from: number, to: number) => {
  const appends = Array.from({ length: to - from }, (_, i) => log.append(event(from + i)));
  await Promise.all(appends);
};

const indexesOf = (log: Pick<LogWriter, "postings">, term: string) => {
  const list = log.postings(term);
  return list.window(0, list.length);
};

/** Asserts that both show the same of the first `size` entries. */
function expectAlike(follower: LogFollower, log: LogWriter): void {
  const { size } = log;
  expect(follower.size).toBe(size);
  expect(follower.treeHead()).toEqual(log.treeHead());
  expect(follower.head()).toEqual(log.head());
  for (const at of new Set([0, size >> 1, size - 1].filter((index) => index >= 0 && index < size))) {
    expect(follower.entryJsonAt(at)).toEqual(log.entryJsonAt(at));
    expect(follower.inclusionProof(at)).toEqual(log.inclusionProof(at));
    expect(follower.inclusionProof(at, { treeVersion: 1 })).toEqual(log.inclusionProof(at, { treeVersion: 1 }));
    expect(follower.consistencyProof(at + 1)).toEqual(log.consistencyProof(at + 1));
    const only = hashedTerm(POSTING.tag, `only ${at}`);
    expect(indexesOf(follower, only)).toEqual([at]);
  }
  for (let type = 0; type < 7; type++) {
    const term = hashedTerm(POSTING.eventType, `type ${type}`);
    expect(indexesOf(follower, term)).toEqual(indexesOf(log, term));
  }
  expect(follower.tile(2, 0, 0, Math.min(size, 256) || 1)).toEqual(log.tile(2, 0, 0, Math.min(size, 256) || 1));
}

test("after each batch, when it hears of it", async () => {
  const { log, path } = await openTestLog();
  const feed = follow(log, path);
  const follower = feed.open();
  expectAlike(follower, log);
  for (const [from, to] of [
    [0, 1],
    [1, 2],
    [2, 300],
    [300, 1500],
  ] as const) {
    await appendAll(log, from, to);
    expect(follower.size).toBe(from);
    feed.hear();
    expectAlike(follower, log);
  }
});

test("until it hears, it shows the moment before, though the disk is ahead", async () => {
  const { log, path } = await openTestLog();
  const feed = follow(log, path);
  await appendAll(log, 0, 10);
  const follower = feed.open();
  const [head, proof] = [follower.treeHead(), follower.inclusionProof(3)];
  feed.hear();
  await appendAll(log, 10, 20);
  expect([follower.size, follower.treeHead(), follower.inclusionProof(3)]).toEqual([10, head, proof]);
  expect(follower.entryAt(12)).toBeUndefined();
  expect(indexesOf(follower, hashedTerm(POSTING.tag, "only 12"))).toEqual([]);
});

describe("while runs of postings are made", () => {
  test("three runs and their merge, heard of in one go or one by one", async () => {
    const { log, path } = await openTestLog();
    const feed = follow(log, path);
    const follower = feed.open();
    for (let run = 0; run < 5; run++) {
      const from = run * FLUSH_ENTRIES;
      for (let at = from; at < from + FLUSH_ENTRIES; at += 512) {
        await appendAll(log, at, at + 512);
        if (run % 2) feed.hear();
      }
      feed.hear();
      expectAlike(follower, log);
    }
    await expect.poll(() => feed.sent.filter(({ kind }) => kind === "runs").length).toBeGreaterThan(0);
    feed.hear();
    expectAlike(follower, log);
  });

  test("that are merged on disk, when it must read all anew before it hears of that", async () => {
    const { log, path } = await openTestLog();
    const feed = follow(log, path);
    for (let at = 0; at < FLUSH_ENTRIES + 512; at += 512) await appendAll(log, at, at + 512);
    await expect.poll(() => feed.sent.filter(({ kind }) => kind === "runs").length).toBeGreaterThan(0);
    const follower = feed.open();
    feed.hear();
    for (let at = log.size; at < 5 * FLUSH_ENTRIES; at += 512) await appendAll(log, at, at + 512);
    const store = openStore({ path, mapSize: MAP_SIZE, readOnly: true });
    await expect.poll(() => store.postings.filedIds().includes(1)).toBe(false);
    await store.close();
    follower.follow({ kind: "restored" });
    expectAlike(follower, log);
  });

  test("opened between the freezing and the run", async () => {
    const { log, path } = await openTestLog();
    const feed = follow(log, path);
    const appending = appendAll(log, 0, FLUSH_ENTRIES + 700);
    await expect.poll(() => feed.sent.some(({ kind }) => kind === "frozen")).toBe(true);
    const follower = feed.open();
    await appending;
    feed.hear();
    expectAlike(follower, log);
    await appendAll(log, FLUSH_ENTRIES + 700, FLUSH_ENTRIES + 900);
    feed.hear();
    expectAlike(follower, log);
  });
});

test("proofs after so many new leaves that the trees are read from disk", async () => {
  const { log, path } = await openTestLog();
  const feed = follow(log, path);
  const follower = feed.open();
  await appendAll(log, 0, 5000);
  feed.hear(3);
  // The disk is ahead of what it has heard, and the trees with it.
  feed.hear();
  await appendAll(log, 5000, 5003);
  feed.hear();
  expectAlike(follower, log);
});

test("a write that failed and is on disk all the same is shown after the recovery", async () => {
  const { log, path, faults } = await openFaultyLog();
  const feed = follow(log, path);
  const follower = feed.open();
  await appendAll(log, 0, 5);
  faults.plan = ["persisted anyway"];
  await expect(log.append(event(5))).rejects.toMatchObject({ code: "storage-failed" });
  await appendAll(log, 6, 9);
  feed.hear();
  expectAlike(follower, log);
  expect(indexesOf(follower, hashedTerm(POSTING.tag, "only 5"))).toEqual([5]);
});

test("when the writer's process must not use the log any more, nothing is read, and nothing said to be missing", async () => {
  const { log, path } = await openTestLog();
  const feed = follow(log, path);
  const follower = feed.open();
  await appendAll(log, 0, 3);
  feed.hear();
  follower.follow({ kind: "failed", message: "A write to the log failed." });
  followers.delete(follower);
  expect(follower.failure).toMatchObject({ code: "storage-failed", message: "A write to the log failed." });
  for (const read of [() => follower.treeHead(), () => follower.entryAt(99), () => follower.row("meta", "log")])
    expect(read).toThrow("A write to the log failed.");
});

test("commands of a follower are run by the writer, and their receipts are the writer's", async () => {
  const { log, path } = await openTestLog();
  const feed = follow(log, path);
  const follower = feed.open();
  const receipt = await follower.append(event(0));
  expect(receipt).toEqual(log.receipt(0));
  feed.hear();
  expect(follower.receipt(0)).toEqual(receipt);
});

test("any batches, heard of in any portions", async () => {
  const portions = fc.array(
    fc.record({ entries: fc.integer({ min: 0, max: 40 }), heard: fc.integer({ min: 0, max: 5 }) }),
    {
      maxLength: 12,
    },
  );
  await fc.assert(
    fc.asyncProperty(portions, fc.integer({ min: 0, max: 11 }), async (steps, openedAt) => {
      const { log, path } = await openTestLog();
      const feed = follow(log, path);
      let follower: LogFollower | undefined;
      let size = 0;
      for (const [i, { entries, heard }] of steps.entries()) {
        if (i === openedAt) follower = feed.open();
        await appendAll(log, size, size + entries);
        size += entries;
        if (!follower) continue;
        feed.hear(heard);
        // Whatever it has heard, what it shows agrees with itself.
        if (follower.size) expect(follower.inclusionProof(0).root_hash).toBe(follower.treeHead()!.root_hash);
      }
      follower ??= feed.open();
      feed.hear();
      expectAlike(follower, log);
    }),
    { numRuns: 15 },
  );
});
