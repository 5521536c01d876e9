/** The end of a log: nothing gets behind it, by whatever way, and it stays the end. */
import { describe, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { encodeRecord } from "#cairnlog/engine/journal/record.js";
import type { FeedMessage } from "#cairnlog/engine/log/follow/feed.js";
import { openHistory } from "#cairnlog/engine/log/history/history.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import { beginLog, continuedBy, freeze } from "#cairnlog/engine/log/operator/entries.js";
import { acceptClock } from "#cairnlog/engine/log/state/clock.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import { parsePublicKey } from "#cairnlog/engine/verify/index.js";
import { formatVkey, noteKey } from "#cairnlog/engine/verify/note/key.js";
import { decodeRecord, FakeJournal } from "../../journal/fakejournal.js";
import { MAP_SIZE, openFaultyLog, openTestLog, openTestReader, temporaryFolder, testOperator } from "../harness.js";
import { chain, line, momentNumber } from "../history/entries.js";
import { replaceInBatch, tamper } from "../tamper.js";

const note = { event_type: "note", payload: {} };
const vkey = formatVkey(noteKey("next.example/tlog", parsePublicKey(testOperator.public.pem)));
const ENDING = { reason: "The year is over.", successor: { url: "https://next.example", vkey } };
const end = { event_type: "log_frozen", payload: { event_type: "log_frozen", ...ENDING } };

const refusal = (work: Promise<unknown>): Promise<CairnlogError> =>
  work.then(
    () => expect.fail("it was not refused"),
    (error: CairnlogError) => error,
  );

/** A log that was frozen with entry 2. */
async function openFrozen() {
  const opened = await openTestLog();
  await opened.log.append(note);
  const receipt = await freeze(opened.log, ENDING);
  return { ...opened, receipt };
}

test("the end is an entry under a head, and says where the log goes on", async () => {
  const { log, path, receipt } = await openFrozen();
  expect(receipt).toMatchObject({ log_entry_id: 2, leaf_index: 1, sth: { tree_size: 2 } });
  expect(log.head()).toMatchObject({ id: 2, ...end });
  const { timestamp } = receipt;
  const frozen = { entry_id: 2, timestamp, ...ENDING };
  expect(log.frozen).toEqual(frozen);
  expect((await openTestReader(path)).frozen).toEqual(frozen);
});

test("every append behind it is refused with the successor, in its batch and after a restart; reads and fresh heads go on", async () => {
  const { log, path } = await openTestLog();
  const waiting = [
    log.append(note),
    freeze(log, ENDING),
    log.append(note),
    log.append([note, note]),
    freeze(log, ENDING),
  ];
  const ends = await Promise.allSettled(waiting);
  expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "rejected", "rejected"]);
  const expectEnded = async (writer: typeof log) => {
    expect(writer.size).toBe(2);
    expect(await refusal(writer.append(note))).toMatchObject({
      code: "frozen",
      successor: ENDING.successor,
      message: "This log was frozen by entry 2: nothing is written to it any more. It goes on at https://next.example.",
    });
    expect((await writer.signHead()).tree_size).toBe(2);
    expect(writer.inclusionProof(0).audit_path).toHaveLength(1);
    expect(await writer.verify()).toMatchObject({ valid: true, entry_count: 2 });
  };
  await expectEnded(log);
  await log.close();
  const { log: again } = await openTestLog({ path });
  await expectEnded(again);
});

test("a command that would go on behind the end is undone as a whole, and the log is not frozen by it", async () => {
  const { log } = await openTestLog();
  const behind = [log.append([end, note]), log.append(note)];
  expect(await refusal(behind[0]!)).toMatchObject({ code: "frozen" });
  await behind[1];
  expect([log.size, log.frozen]).toEqual([1, null]);
});

test.each(["not persisted", "persisted anyway"] as const)(
  "a freezing that fails (%s) is what the disk says",
  async (fate) => {
    const { log, path, faults } = await openFaultyLog();
    await log.append(note);
    faults.plan = [fate];
    expect(await refusal(freeze(log, ENDING))).toMatchObject({ code: "storage-failed" });
    const isFrozen = fate === "persisted anyway";
    const outcome = await log.append(note).then(
      () => "appended",
      ({ code }: CairnlogError) => code,
    );
    expect(outcome).toBe(isFrozen ? "frozen" : "appended");
    expect([log.size, log.frozen !== null]).toEqual([2, isFrozen]);
    await log.close();
    expect((await openTestReader(path)).frozen !== null).toBe(isFrozen);
  },
);

test("an end that says something else, or leads to no log, is refused", async () => {
  const { log } = await openTestLog();
  const wrong = { event_type: "log_frozen", payload: { reason: "" } };
  expect(await refusal(log.append(wrong))).toMatchObject({ code: "invalid-input" });
  for (const url of [
    "next.example",
    "ftp://next.example",
    "https://next.example/",
    "https://next.example/?a",
    "https://a@next.example",
  ])
    expect(await refusal(freeze(log, { ...ENDING, successor: { url, vkey } })), url).toMatchObject({
      code: "invalid-input",
    });
  const misspelt = { url: "https://next.example/2027", vkey: vkey.replace("next", "last") };
  expect(await refusal(freeze(log, { ...ENDING, successor: misspelt }))).toMatchObject({ code: "invalid-key" });
  expect(log.size).toBe(0);
});

test("a follower in another thread knows it with the batch, and one that opens later from the disk", async () => {
  const { log, path } = await openTestLog();
  const messages: FeedMessage[] = [];
  log.feed((message) => messages.push(structuredClone(message)));
  const writer = {
    enqueue: log.enqueue.bind(log),
    signHead: () => log.signHead(),
    verify: () => log.verify(),
  };
  const open = () => openLogFollower({ path, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE, writer });
  await log.append(note);
  const follower = open();
  await freeze(log, ENDING);
  expect(follower.frozen).toBeNull();
  for (const message of messages) follower.follow(message);
  const later = open();
  expect(follower.frozen).toEqual(log.frozen);
  expect(later.frozen).toEqual(log.frozen);
  await follower.close();
  await later.close();
});

test("a node that follows knows it with the record, refuses one behind it, and appends nothing when it takes over", async () => {
  const journal = new FakeJournal();
  await (await openTestLog({ journal })).log.close();
  const leader = (await openTestLog({ journal, standing: { refusal: null } })).log;
  const follows = { refusal: new CairnlogError("not-leader", "Another node leads.") as CairnlogError | null };
  const { log: follower } = await openTestLog({ journal, standing: follows });
  await freeze(leader, ENDING);
  await follower.follow();
  expect(follower.frozen).toEqual(leader.frozen);
  follows.refusal = null;
  expect(await refusal(follower.append(note))).toMatchObject({ code: "frozen" });
  await follower.close();

  // A node with a fault goes on: what it would write, if it did not know of the end.
  const another = new FakeJournal();
  another.records.push(...journal.records.slice(0, -1));
  const { log: ignorant } = await openTestLog({ journal: another, standing: { refusal: null } });
  await ignorant.append([{ ...end, event_type: "log_frozem" }, note]);
  const record = decodeRecord(another.records.pop()!);
  const batch = Buffer.from(record.batch!);
  batch.write('"log_frozen"', batch.indexOf('"log_frozem"'));
  another.records.push(encodeRecord({ ...record, batch }));
  const standing = { refusal: new CairnlogError("not-leader", "Another node leads.") };
  const { log: strict } = await openTestLog({ path: temporaryFolder(), journal: another, standing });
  expect((await refusal(strict.follow())).message).toContain("no entry may follow it.");
  expect(strict.size).toBe(0);
});

test("the operator key of a frozen log cannot be rotated", async () => {
  const { log, path } = await openFrozen();
  await log.close();
  const to = operatorKey(generatePrivateKey("ed25519"));
  const rotation = rotateOperatorKey({ path, from: testOperator, to, projection: noProjection });
  expect(await refusal(rotation)).toMatchObject({ code: "frozen" });
});

describe("history from elsewhere", () => {
  const entries = chain([{}, end, {}]);
  const options = (path: string) => ({ path, signer: testOperator, mapSize: MAP_SIZE });

  test("that ends with the end makes a frozen log", async () => {
    const path = temporaryFolder();
    await importEntries(options(path), entries.slice(0, 2) as never[]);
    acceptClock(path);
    const { log } = await openTestLog({ path });
    expect(log.frozen).toEqual({ entry_id: 2, timestamp: momentNumber(2), ...ENDING });
    expect(await refusal(log.append(note))).toMatchObject({ code: "frozen" });
  });

  test("is refused at the first entry behind it, in one piece and in two", async () => {
    const imported = importEntries(options(temporaryFolder()), entries as never[]);
    expect((await refusal(imported)).message).toBe(
      "Line 3: Entry 2 froze the log: no entry may follow it. Nothing was imported.",
    );
    const writer = await openHistory({
      path: temporaryFolder(),
      operatorKey: testOperator.public.pem,
      mapSize: MAP_SIZE,
    });
    const items = entries.map((entry) => ({ entry: line(entry), otsProof: null, head: null }));
    await writer.add(items.slice(0, 2));
    expect((await refusal(writer.add(items.slice(2)))).message).toContain("no entry may follow it.");
    await writer.close();
  });
});

test("an entry behind the end is found by a verification, across two batches as well", async () => {
  for (const isOneBatch of [true, false]) {
    const { log, path } = await openTestLog();
    // The type is under no hash; the other check is that of `checkServiceEntry`.
    const events = [{ ...end, event_type: "log_frozem" }, note];
    if (isOneBatch) await log.append(events);
    else for (const event of events) await log.append(event);
    await log.close();
    await tamper(path, "batches", replaceInBatch(0, '"log_frozem"', '"log_frozen"'));
    const reader = await openTestReader(path);
    expect((await reader.verify()).errors).toEqual([
      { id: 2, tree_size: null, code: "after-the-end", message: "Entry 1 froze the log: no entry may follow it." },
    ]);
  }
});

describe("the beginning of a log that goes on from another one", () => {
  const tree_head = {
    ...{ tree_size: 2, root_hash: "0".repeat(64), signature: "", timestamp: momentNumber(1), key_id: "" },
    tree_version: 2 as const,
  };
  const predecessor = { url: "https://last.example", operator_key: testOperator.public.pem, tree_head };
  const beginning = { event_type: "log_continues", payload: { event_type: "log_continues", predecessor } };

  test("is its first entry, and no other one", async () => {
    const { log } = await openTestLog();
    expect(continuedBy(log.entryAt(0))).toBeNull();
    await log.execute(beginLog, { predecessor });
    expect(continuedBy(log.entryAt(0))).toEqual({ entry_id: 1, ...predecessor });
    expect(await refusal(log.execute(beginLog, { predecessor }))).toMatchObject({ code: "precondition-failed" });
    await log.append(note);
    expect(await refusal(log.append(beginning))).toMatchObject({ code: "precondition-failed" });
    expect(log.size).toBe(2);
  });

  test("is refused in a history at any other place, and found there by a verification", async () => {
    const entries = chain([beginning, {}, beginning]);
    const options = { signer: testOperator, mapSize: MAP_SIZE };
    const work = importEntries({ ...options, path: temporaryFolder() }, entries as never[]);
    expect((await refusal(work)).message).toContain("Line 3: Only the first entry of a log says");
    await importEntries({ ...options, path: temporaryFolder() }, entries.slice(0, 2) as never[]);

    const { log, path } = await openTestLog();
    await log.append([note, { ...beginning, event_type: "log_continuez" }]);
    await log.close();
    await tamper(path, "batches", replaceInBatch(0, '"log_continuez"', '"log_continues"'));
    expect((await (await openTestReader(path)).verify()).errors).toMatchObject([{ id: 2, code: "not-the-first" }]);
  });
});
