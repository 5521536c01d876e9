/**
 * What a follower brings up to date when it is asked, what it does with messages that it has seen or missed, and what it
 * leaves to the writer.
 */
import { readdirSync } from "node:fs";
import { afterEach, describe, expect, test, vi } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import type { FeedMessage } from "#cairnlog/engine/log/follow/feed.js";
import type { LogFollower, WriterLink } from "#cairnlog/engine/log/follow/follower.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import { EntryReader } from "#cairnlog/engine/log/read/reader.js";
import type { LogView } from "#cairnlog/engine/log/view/view.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { Postings } from "#cairnlog/engine/store/postings/postings.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { MAP_SIZE, openFaultyLog, openTestLog, temporaryFolder, testOperator } from "../harness.js";
import { runIn } from "../inline.js";

const followers = new Set<LogFollower>();
afterEach(async () => {
  for (const follower of followers) await follower.close();
  followers.clear();
});

const noWriter: WriterLink = {
  enqueue: (_command, _input, _resolve, reject) => reject(new Error("no writer")),
  signHead: () => Promise.reject(new Error("no writer")),
  verify: () => Promise.reject(new Error("no writer")),
};

function openFollower(path: string, writer: WriterLink = noWriter): LogFollower {
  const follower = openLogFollower({ path, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE, writer });
  followers.add(follower);
  return follower;
}

/** A follower of a log, the messages that it was not given yet, and `hear`, which gives them. */
function follow(log: LogWriter, path: string, writer?: WriterLink) {
  const sent: FeedMessage[] = [];
  log.feed((message) => sent.push(structuredClone(message)));
  const follower = openFollower(path, writer);
  const hear = () => {
    for (const message of sent.splice(0)) follower.follow(message);
  };
  return { follower, sent, hear };
}

const event = (n: number) => ({ event_type: `type ${n % 3}`, payload: { n } });
const append = (log: LogWriter, count: number) =>
  log.append(Array.from({ length: count }, (_, i) => event(log.size + i)));
const TERM = hashedTerm(POSTING.eventType, "type 1");
const listed = (log: LogView) => log.postings(TERM).window(0, 10_000);

const READS: readonly [string, (log: LogView) => unknown][] = [
  ["an inclusion proof", (log) => log.inclusionProof(0)],
  ["one of version 1", (log) => log.inclusionProof(1, { treeVersion: 1 })],
  ["one as it is served", (log) => log.inclusionProofJson(0)],
  ["a consistency proof", (log) => log.consistencyProof(1)],
  ["a tile", (log) => log.tile(2, 0, 0, 20)],
  ["a list of postings", listed],
  ["a search", (log) => log.match({ eventTypes: ["type 1"] }, 0, 100)],
  ["entries", (log) => log.find({ eventTypes: ["type 2"] }, 0, 100)],
];

test("whatever is asked for first is that of the newest entries", async () => {
  const { log, path } = await openTestLog();
  await append(log, 10);
  const sent: FeedMessage[] = [];
  log.feed((message) => sent.push(structuredClone(message)));
  // One for each kind of question, so that no other question has brought it up to date.
  const asked = READS.map(([what, read]) => ({ what, read, follower: openFollower(path) }));
  for (const count of [10, 300]) {
    await append(log, count);
    for (const message of sent.splice(0)) for (const { follower } of asked) follower.follow(message);
    for (const { what, read, follower } of asked) expect(read(follower), what).toEqual(read(log));
  }
});

test("proofs after so many leaves that the trees are read from the disk, and after one fewer", async () => {
  const { log, path } = await openTestLog();
  const sent: FeedMessage[] = [];
  log.feed((message) => sent.push(structuredClone(message)));
  const counts = [4095, 4096, 4097];
  const followers = counts.map(() => openFollower(path));
  for (let n = 0; n < 4095; n += 512) await append(log, Math.min(512, 4095 - n));
  for (const [i, count] of counts.entries()) {
    if (i) await append(log, 1);
    expect(log.size).toBe(count);
    for (const message of sent.splice(0))
      for (const follower of followers) if (follower.size < count) follower.follow(message);
    const follower = followers[i]!;
    const { size } = follower;
    expect(size).toBe(count);
    for (const treeVersion of [1, 2] as const)
      for (const index of [0, count - 1])
        expect(follower.inclusionProof(index, { treeVersion })).toEqual(log.inclusionProof(index, { treeVersion }));
    expect(listed(follower)).toEqual(listed(log));
  }
});

describe("a question for postings", () => {
  const BATCH = 512;
  const MAX_UNTAKEN = 1.5 * 4096;
  const parsed = () => vi.spyOn(EntryReader.prototype, "entry");
  const added = () => vi.spyOn(Postings.prototype, "addPacked");
  /** Number of entries whose postings these calls have added. */
  const entriesOf = ({ mock }: ReturnType<typeof added>) =>
    mock.calls.reduce((sum, [to, , from]) => sum + to - from, 0);

  test("adds those of a bounded number of entries, however long no run is made; so does a batch that is told", async () => {
    const { log, path } = await openTestLog();
    await append(log, 1);
    const { follower, sent } = follow(log, path);
    const adding = added();
    try {
      for (let n = 0; n < 3 * MAX_UNTAKEN; n += BATCH) {
        await append(log, BATCH);
        // As if the writer could make no run.
        for (const message of sent.splice(0)) if (message.kind === "batch") follower.follow(message);
        expect(entriesOf(adding)).toBeLessThanOrEqual(BATCH);
        adding.mockClear();
      }
      const all = { eventTypes: ["type 0", "type 1", "type 2"] };
      expect(follower.match(all, 0, 1).total).toBe(log.size);
      expect(entriesOf(adding)).toBe(MAX_UNTAKEN);
    } finally {
      adding.mockRestore();
    }
  });

  test("parses no entries that were on the log when it was opened", async () => {
    const { log, path } = await openTestLog();
    await append(log, 1000);
    const { follower, hear } = follow(log, path);
    await append(log, 10);
    hear();
    const parsing = parsed();
    try {
      expect(listed(follower)).toEqual(listed(log));
      expect(parsing).not.toHaveBeenCalled();
    } finally {
      parsing.mockRestore();
    }
  });
});

test("questions parse no entry, whether they come before a run is begun, while it is made or afterwards", async () => {
  const { log, path } = await openTestLog();
  await append(log, 1);
  const { follower, sent } = follow(log, path);
  const held: FeedMessage[] = [];
  const seen = new Set<string>();
  const parsing = vi.spyOn(EntryReader.prototype, "entry");
  try {
    for (let n = 0; n < 50; n++) {
      await append(log, 200);
      // A run takes as long to make as some batches.
      if (n % 7 === 0) for (const message of held.splice(0)) follower.follow(message);
      for (const message of sent.splice(0)) {
        seen.add(message.kind);
        if (message.kind === "runs") held.push(message);
        else follower.follow(message);
      }
      expect(listed(follower)).toEqual(listed(log));
    }
    expect(seen).toEqual(new Set(["batch", "frozen", "runs"]));
    expect(parsing).not.toHaveBeenCalled();
  } finally {
    parsing.mockRestore();
  }
});

describe("messages", () => {
  test("of one batch show that batch, and not the next one, which is on the disk", async () => {
    const { log, path } = await openTestLog();
    await append(log, 2);
    const { follower, sent } = follow(log, path);
    for (const count of [3, 4]) await append(log, count);
    for (const size of [5, 9]) {
      follower.follow(sent.shift()!);
      expect([follower.size, follower.treeHead()]).toEqual([size, log.treeHead(size)]);
      expect(follower.inclusionProof(0)).toEqual(log.inclusionProof(0, { treeSize: size }));
      expect(follower.match({}, 0, 1).total).toBe(size);
    }
  });

  test("of batches that it saw when it was opened change nothing", async () => {
    const { log, path } = await openTestLog();
    const sent: FeedMessage[] = [];
    log.feed((message) => sent.push(structuredClone(message)));
    await append(log, 3);
    await append(log, 300);
    const follower = openFollower(path);
    const shown = READS.map(([, read]) => read(follower));
    for (const message of sent.splice(0)) follower.follow(message);
    expect(follower.size).toBe(303);
    expect(READS.map(([, read]) => read(follower))).toEqual(shown);
    expect(follower.batches).toBe(2);
    await append(log, 5);
    for (const message of sent.splice(0)) follower.follow(message);
    expect(READS.map(([, read]) => read(follower))).toEqual(READS.map(([, read]) => read(log)));
    expect(follower.batches).toBe(3);
  });

  test("that were missed are made up for from the disk", async () => {
    const { log, path } = await openTestLog();
    await append(log, 2);
    const { follower, sent, hear } = follow(log, path);
    for (const count of [3, 300, 4]) await append(log, count);
    sent.shift();
    hear();
    expect(follower.size).toBe(log.size);
    expect(READS.map(([, read]) => read(follower))).toEqual(READS.map(([, read]) => read(log)));
  });

  test("name rows of which readers keep something, and no others", async () => {
    const { log, path } = await openTestLog();
    await append(log, 1);
    const { follower, sent, hear } = follow(log, path);
    const seen: unknown[] = [];
    follower.observeRows("passwords", (changes) => seen.push(changes));
    follower.observeRows("counters", (changes) => seen.push(changes));
    const secret = { phc: "$", set_at: "" } as never;
    await runIn(log, (transaction) => {
      transaction.put("passwords", "someone", secret);
      transaction.put("counters", "webhook", { last: 1 });
    });
    expect(sent).toMatchObject([{ kind: "batch", size: 1, rows: [{ table: "passwords", key: "someone" }] }]);
    hear();
    expect(seen.splice(0)).toEqual([[{ table: "passwords", key: "someone", row: secret }]]);
    await runIn(log, (transaction) => transaction.put("passwords", "someone", undefined));
    hear();
    expect(seen.splice(0)).toEqual([[{ table: "passwords", key: "someone", row: undefined }]]);
    follower.follow({ kind: "restored" });
    expect(seen).toEqual([null, null]);
  });

  test("of an anchor's change bring the totals up to date", async () => {
    const { log, path } = await openTestLog();
    await append(log, 3);
    const { follower, hear } = follow(log, path);
    const before = follower.anchors.totals;
    await log.anchors.replace(log, 1, undefined, {
      proof: Buffer.from("a proof"),
      status: "pending",
      isSettled: false,
    });
    expect(follower.anchors.totals).toEqual(before);
    hear();
    expect(follower.anchors.totals).toEqual(log.anchors.totals);
    expect(follower.anchors.totals).not.toEqual(before);
  });

  test("tell that the writer cannot use the log any more", async () => {
    const { log, path, faults } = await openFaultyLog();
    await append(log, 1);
    const { follower, sent, hear } = follow(log, path);
    faults.store.health.end(new CairnlogError("storage-failed", "A write to the log failed."));
    expect(sent).toEqual([{ kind: "failed", message: "A write to the log failed." }]);
    hear();
    followers.delete(follower);
    expect(follower.failure).toMatchObject({ code: "storage-failed", message: "A write to the log failed." });
  });
});

test("what only the writer can do is the writer's", async () => {
  const { log, path } = await openTestLog();
  const verify = vi.fn(() => log.verify());
  const { follower, hear } = follow(log, path, {
    enqueue: (...given) => log.enqueue(...given),
    signHead: () => log.signHead(),
    verify,
  });
  expect([follower.queued, follower.batches]).toEqual([0, 0]);
  const receipts = await follower.append([event(0), event(1)]);
  expect(receipts).toEqual([log.receipt(0), log.receipt(1)]);
  expect(await follower.append([])).toEqual([]);
  hear();
  expect(await follower.signHead()).toMatchObject({ tree_size: 2, root_hash: follower.treeHead()!.root_hash });
  expect(await follower.verify()).toMatchObject({ valid: true, entry_count: 2 });
  expect(verify).toHaveBeenCalledTimes(1);
});

test("a log that nobody has begun cannot be followed, and no file is made", () => {
  const path = temporaryFolder();
  expect(() => openFollower(path)).toThrow(expect.objectContaining({ code: "storage-failed" }));
  expect(readdirSync(path)).toEqual([]);
});
