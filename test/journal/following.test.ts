/** A node that follows a journal tells its front ends of all that it applies, and after a failure what the disk says. */
import { afterEach, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import type { FeedMessage } from "#cairnlog/engine/log/follow/feed.js";
import type { LogFollower, WriterLink } from "#cairnlog/engine/log/follow/follower.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import { eventOf } from "#cairnlog/engine/verify/events/kinds.js";
import { payloadHash } from "#cairnlog/engine/verify/events/withheld.js";
import { MAP_SIZE, openFaultyLog, openTestLog, testOperator } from "../log/harness.js";
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

test("what is on disk all the same after a write that failed", async () => {
  const { leader, node, front, faults, hear } = await nodes();
  await leader.append({ event_type: "note", payload: { n: 1 } });
  faults.plan = ["persisted anyway"];
  await expect(node.follow()).rejects.toMatchObject({ code: "storage-failed" });
  hear();
  expect([node.size, front.size]).toEqual([2, 2]);
  expect(front.entryJsonAt(1)).toEqual(leader.entryJsonAt(1));
});
