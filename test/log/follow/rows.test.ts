/** What follows from rows that are not entries reaches a follower with the batch that changes them, and after a failure; and what it keeps of trees. */
import { expect, onTestFinished, test, vi } from "vitest";
import type { FeedMessage } from "#cairnlog/engine/log/follow/feed.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { Frontier } from "#cairnlog/engine/log/read/frontier.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { heldMemory } from "../../held-memory.js";
import { MAP_SIZE, openFaultyLog, testOperator } from "../harness.js";
import { runIn } from "../inline.js";

const note = (n: number) => ({ event_type: "https://example.org/note", payload: { n, tags: ["all", `tag ${n}`] } });

async function followed() {
  const { log, path, faults } = await openFaultyLog();
  const sent: FeedMessage[] = [];
  log.feed((message) => sent.push(structuredClone(message)));
  await log.append([note(0), note(1), note(2)]);
  const follower = openLogFollower({
    path,
    operatorKey: testOperator.public.pem,
    mapSize: MAP_SIZE,
    writer: {
      enqueue: (...given) => log.enqueue(...given),
      signHead: () => log.signHead(),
      verify: () => log.verify(),
    },
  });
  onTestFinished(() => follower.close());
  /** @returns the first digests that were told */
  const hear = () => {
    const told = sent.splice(0);
    for (const message of told) follower.follow(message);
    return told.flatMap((message) => (message.kind === "batch" ? message.digests : []))[0];
  };
  hear();
  return { log, faults, follower, hear };
}

/** What both show of all entries. */
const shown = (log: Awaited<ReturnType<typeof followed>>["log" | "follower"]) => ({
  entries: Array.from({ length: log.size }, (_, index) => log.entryAt(index)),
  withheld: log.withheldLeaves,
  found: [0, 1, 2].map((n) => log.postings(hashedTerm(POSTING.tag, `tag ${n}`)).window(0, 9)),
  matched: log.match({ tags: ["all"] }, 0, 9),
  anchors: log.anchors.totals,
});

test("payloads that are withheld are shown by nobody who has heard of it", async () => {
  const { log, follower, hear } = await followed();
  // Read before, so that what is kept of them must go.
  shown(follower);
  for (const id of [2, 1]) {
    await withhold({ log, writer: follower }, id, { reason: "an order", basis: null });
    expect(follower.entryAt(id - 1)!.payload).not.toBeNull();
    hear();
    expect(follower.entryAt(id - 1)!.payload).toBeNull();
    expect(shown(follower)).toEqual(shown(log));
  }
  expect(follower.withheldLeaves).toEqual([0, 1]);
});

test("rows that a follower keeps something of are told to whoever observes their table, with what they are now", async () => {
  const { log, faults, follower, hear } = await followed();
  const heard: unknown[] = [];
  follower.observeRows("passwords", (changes) => heard.push(changes));
  const row = { hash: "h" } as never;
  await runIn(log, (transaction) => transaction.put("passwords", "a", row));
  await runIn(log, (transaction) => transaction.put("passwords", "a", undefined));
  await runIn(log, (transaction) => transaction.put("userNames", "a", row));
  expect(heard).toEqual([]);
  hear();
  const change = { table: "passwords", key: "a", row: undefined };
  expect(heard.splice(0)).toEqual([[change], [change]]);
  await runIn(log, (transaction) => transaction.put("passwords", "b", row));
  hear();
  expect(heard.splice(0)).toEqual([[{ table: "passwords", key: "b", row }]]);
  // Memory may be ahead of the disk, or behind it: all of it is read again.
  faults.plan = ["persisted anyway"];
  await expect(runIn(log, (transaction) => transaction.put("passwords", "c", row))).rejects.toThrow();
  await log.append(note(3));
  hear();
  expect(heard).toContain(null);
  expect(shown(follower)).toEqual(shown(log));
});

test("trees that were read from a disk that was ahead of what was told are those of the writer", async () => {
  const { log, follower, hear } = await followed();
  const many = Array.from({ length: 512 }, () => ({ event_type: "note", payload: {} }));
  // More than are added to the trees one batch after the other.
  for (let batch = 0; batch < 9; batch++) await log.append(many);
  const first = new WeakRef(hear()!);
  await new Promise((resolve) => setTimeout(resolve));
  heldMemory();
  // They are on the disk: nothing more is kept of them until somebody asks.
  expect(first.deref()).toBeUndefined();
  const heard = follower.size;
  await log.append([note(3), note(4), note(5)]);
  const proofs = (of: typeof log | typeof follower, size: number) =>
    [0, heard - 1, size - 1].map((index) => [of.inclusionProof(index), of.consistencyProof(index + 1)]);
  expect(follower.inclusionProof(heard - 1).tree_size).toBe(heard);
  hear();
  expect(proofs(follower, log.size)).toEqual(proofs(log, log.size));
  await log.append(note(6));
  hear();
  expect(proofs(follower, log.size)).toEqual(proofs(log, log.size));
});

test("full tiles are the disk's: no thread that is asked for proofs keeps them", async () => {
  const { log, follower, hear } = await followed();
  const { extend } = Frontier.prototype;
  const tiles: WeakRef<Uint8Array>[] = [];
  const extending = vi.spyOn(Frontier.prototype, "extend").mockImplementation(function (this: Frontier, ...given) {
    const extended = extend.apply(this, given);
    for (const { hashes } of extended.tiles) if (hashes?.length === 256 * 32) tiles.push(new WeakRef(hashes));
    return extended;
  });
  onTestFinished(() => extending.mockRestore());
  const many = Array.from({ length: 512 }, () => ({ event_type: "note", payload: {} }));
  for (let batch = 0; batch < 4; batch++) {
    await log.append(many);
    hear();
    expect(follower.inclusionProof(0)).toEqual(log.inclusionProof(0));
  }
  extending.mockClear();
  await new Promise((resolve) => setTimeout(resolve));
  heldMemory();
  // Of two trees, the writer's and the follower's.
  expect(tiles.length).toBe(2 * 2 * 8);
  expect(tiles.filter((tile) => tile.deref())).toEqual([]);
});
