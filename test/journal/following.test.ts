/** A node that follows a journal tells its front ends of all that it applies, and after a failure what the disk says. */
import { afterEach, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import type { FeedMessage } from "#cairnlog/engine/log/follow/feed.js";
import type { LogFollower, WriterLink } from "#cairnlog/engine/log/follow/follower.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import { eventOf } from "#cairnlog/engine/verify/events/kinds.js";
import { payloadHash } from "#cairnlog/engine/verify/events/withheld.js";
import { MAP_SIZE, openFaultyLog, openTestLog, testOperator } from "../log/harness.js";
import { runIn } from "../log/inline.js";
import { FakeJournal } from "./fakejournal.js";

const STANDING = { refusal: new CairnlogError("not-leader", "Another node writes the log.") };

let front: LogFollower | undefined;
afterEach(() => front?.close());

/** A leader, and a node that follows it with a front end, which hears when `hear` is called. */
async function nodes() {
  const journal = new FakeJournal();
  const { log: leader } = await openTestLog({ journal });
  const { log: node, path, faults } = await openFaultyLog({ journal, standing: STANDING });
  await leader.append({ event_type: "note", payload: {} });
  await node.follow();
  const sent: FeedMessage[] = [];
  node.feed((message) => sent.push(structuredClone(message)));
  const writer: WriterLink = {
    enqueue: (...given) => node.enqueue(...given),
    signHead: () => node.signHead(),
    verify: () => node.verify(),
  };
  const shown = openLogFollower({ path, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE, writer });
  front = shown;
  const hear = () => {
    for (const message of sent.splice(0)) shown.follow(message);
  };
  return { leader, node, front: shown, faults, hear };
}

test("entries, and payloads that are withheld since they were shown", async () => {
  const { leader, node, front, hear } = await nodes();
  const payload = { document_title: "correct horse" };
  const event_type = "https://example.org/statement/v1";
  const { log_entry_id: entry_id, entry_hash } = await leader.append({ event_type, payload });
  await node.follow();
  hear();
  expect(front.entry(entry_id)).toMatchObject({ payload });
  const withheld = { entry_id, entry_hash, payload_hash: payloadHash(payload), reason: "an order", basis: null };
  const { log_entry_id } = await leader.append(eventOf("payload_withheld", withheld));
  await node.follow();
  hear();
  for (const log of [leader, node, front])
    expect(log.entry(entry_id)).toMatchObject({ payload: null, withheld_by: log_entry_id });
});

test("rows of which front ends keep something, whichever node has written them", async () => {
  const { leader, node, front, hear } = await nodes();
  const seen: unknown[] = [];
  front.observeRows("passwords", (changes) => seen.push(...(changes ?? [null]).map((change) => change?.row)));
  const told = async () => {
    await node.follow();
    hear();
    return [seen.splice(0), front.anchors.totals];
  };
  const password = { hash: "hash", version: "1" };
  const totals = { newest: 0, pending: 1, confirmed: 0 };
  await runIn(leader, (transaction) => transaction.put("passwords", "someone", password));
  expect(await told()).toEqual([[password], { newest: -1, pending: 0, confirmed: 0 }]);
  await runIn(leader, (transaction) => transaction.put("anchorTotals", "log", totals));
  // With entries of the same record, and of others behind it.
  const both = runIn(leader, (transaction) => {
    transaction.append({ event_type: "note", payload: {} });
    transaction.put("passwords", "someone", undefined);
  });
  await Promise.all([both, leader.append({ event_type: "note", payload: {} })]);
  expect(await told()).toEqual([[undefined], totals]);
});

test("nodes that take turns: each goes on behind what the other has written", async () => {
  const journal = new FakeJournal();
  let leads = 0;
  const standing = (number: number) => ({
    get refusal() {
      return leads === number ? null : STANDING.refusal;
    },
  });
  const { log: first } = await openTestLog({ journal });
  await first.append({ event_type: "note", payload: {} });
  await first.close();
  const opened = [0, 1].map((number) => openTestLog({ journal, standing: standing(number) }));
  const logs = (await Promise.all(opened)).map(({ log }) => log);
  // Who leads, and follows or not before; a node may lead twice, and may be late by several records.
  for (const [turn, isFollowed] of [
    [0, true],
    [1, true],
    [1, false],
    [0, true],
    [0, true],
    [1, true],
    [0, true],
  ] as const) {
    for (const log of isFollowed ? logs : [logs[turn]!]) await log.follow();
    leads = turn;
    for (let n = 0; n < 2; n++) await logs[turn]!.append({ event_type: "note", payload: { turn, n } });
  }
  for (const log of logs) {
    await log.follow();
    expect(log.size).toBe(15);
    expect((await log.verify()).errors).toEqual([]);
    expect(log.stateDifferences()).toEqual([]);
  }
  expect([...logs[1]!.entries()]).toEqual([...logs[0]!.entries()]);
});

test("what is on disk all the same after a write that failed", async () => {
  const { leader, node, front, faults, hear } = await nodes();
  await leader.append({ event_type: "note", payload: { n: 1 } });
  faults.plan = ["persisted anyway"];
  await expect(node.follow()).rejects.toMatchObject({ code: "storage-failed" });
  hear();
  expect([node.size, front.size]).toEqual([2, 2]);
  expect(front.entryJsonAt(1)).toEqual(leader.entryJsonAt(1));
});
