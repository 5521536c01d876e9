/** The stages of a batch: what is signed and written after a failure, what is answered, and when a log is idle. */
import { createPublicKey, verify as opensslVerify } from "node:crypto";
import { afterEach, describe, expect, test, vi } from "vitest";
import { importPublicKey } from "#cairnlog/engine/crypto/keys/spki.js";
import { type Signer, signatures } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { appendEvents } from "#cairnlog/engine/log/state/commands.js";
import { openFaultyLog, openTestLog, testOperator } from "../harness.js";
import { runIn } from "../inline.js";

const releases: (() => void)[] = [];
afterEach(() => {
  // A failed test must not leave a log that cannot be closed.
  for (const release of releases.splice(0)) release();
});

const event = { event_type: "note", payload: {} };
const NOON = Date.UTC(2026, 0, 1, 12) * 1000;
const at = (micros: number) => `2026-01-01T12:00:00.${String(micros).padStart(6, "0")}Z`;

const turns = async (count = 5) => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** A promise that resolves when `release` is called. */
function held() {
  let release = () => {};
  const until = new Promise<void>((resolve) => {
    release = resolve;
  });
  releases.push(release);
  return { until, release };
}

/** The operator's signer, which notes how many messages it was given, and can be made to fail. */
function openSigner() {
  const signer = {
    ...testOperator,
    signed: [] as number[],
    isGone: false,
    sign(messages: readonly Uint8Array[]) {
      signer.signed.push(messages.length);
      return signer.isGone ? Promise.reject(new Error("token removed")) : testOperator.sign(messages);
    },
  };
  return signer;
}

test("while all goes well, memory is not read from the disk again", async () => {
  const { log, faults } = await openFaultyLog();
  const reading = vi.spyOn(faults, "beforeReading");
  for (let n = 0; n < 3; n++) await log.append(event);
  await turns();
  expect(reading).not.toHaveBeenCalled();
  faults.plan = ["not persisted"];
  await expect(log.append(event)).rejects.toMatchObject({ code: "storage-failed" });
  expect(reading).toHaveBeenCalled();
});

describe("after a write that failed", () => {
  test("no batch that was built on it is written, and none is signed any more", async () => {
    const signer = openSigner();
    const { log, faults } = await openFaultyLog({ signer });
    const { begun } = faults;
    const { until, release } = held();
    faults.hold = until;
    faults.plan = ["persisted anyway"];
    const appends = [log.append(event)];
    await turns();
    // One batch that is signed and waits for the disk, and one that is formed and waits for the signer.
    for (let n = 0; n < 2 * 512; n++) appends.push(log.append(event));
    await turns();
    expect([signer.signed, log.queued, faults.begun]).toEqual([[1, 512], 0, begun + 1]);
    release();
    for (const outcome of await Promise.allSettled(appends))
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "storage-failed" } });
    expect([signer.signed, faults.begun, log.size]).toEqual([[1, 512], begun + 1, 1]);
    expect(await log.append(event)).toMatchObject({ leaf_index: 1 });
  });

  test("commands that waited meanwhile run on what the disk has", async () => {
    const { log, faults } = await openFaultyLog();
    const { until, release } = held();
    faults.hold = until;
    faults.plan = ["not persisted"];
    const failing = log.append(event);
    await turns();
    const waiting = [log.append(event), log.append(event)];
    await turns();
    expect(log.queued).toBe(2);
    release();
    await expect(failing).rejects.toMatchObject({ code: "storage-failed" });
    expect((await Promise.all(waiting)).map(({ leaf_index }) => leaf_index)).toEqual([0, 1]);
    expect([log.queued, log.lastFailure]).toEqual([0, null]);
  });
});

test("why the newest batch failed is said until one is signed and written; a command that only looks is none", async () => {
  const signer = openSigner();
  const { log } = await openTestLog({ signer });
  await log.append(event);
  signer.isGone = true;
  await expect(log.append(event)).rejects.toMatchObject({ code: "signer-unavailable" });
  const { batches } = log;
  expect(await runIn(log, ({ timestamp }) => typeof timestamp)).toMatchObject({ value: "string", receipts: [] });
  expect(log.lastFailure).toMatchObject({ code: "signer-unavailable" });
  expect(log.batches).toBe(batches);
  signer.isGone = false;
  await log.append(event);
  expect([log.lastFailure, log.batches]).toEqual([null, batches + 1]);
});

describe("closing", () => {
  test("a log whose disk has no room answers what waits, and closes", async () => {
    const { log, faults } = await openFaultyLog();
    faults.hasRoom = false;
    const appending = expect(log.append(event)).rejects.toMatchObject({ code: "storage-full" });
    const closing = log.close();
    await appending;
    await closing;
  });

  test("by several callers ends for all of them when everything is answered", async () => {
    const { log } = await openTestLog();
    const order: string[] = [];
    const appending = log.append(event).then(() => order.push("answered"));
    await Promise.all([log.close().then(() => order.push("closed")), appending]);
    await log.close();
    expect(order).toEqual(["answered", "closed"]);
  });
});

describe("answers", () => {
  test("each has its own entry, head and bytes, in a batch of several commands with several events", async () => {
    const { log } = await openTestLog({ digests: ["sha2-512"] });
    await log.append(event);
    const notes = (n: number, count: number) =>
      Array.from({ length: count }, (_, i) => ({ event_type: `type ${n}`, payload: { n, i, text: "é".repeat(i) } }));
    const outcomes = await Promise.all(
      [3, 0, 1, 2].map((count, n) => log.execute(appendEvents, { events: notes(n, count) })),
    );
    expect(outcomes.map(({ receipts }) => receipts.length)).toEqual([3, 0, 1, 2]);
    const receipts = outcomes.flatMap((outcome) => outcome.receipts);
    expect(receipts.map(({ leaf_index }) => leaf_index)).toEqual([1, 2, 3, 4, 5, 6]);
    for (const receipt of receipts) {
      expect(receipt).toEqual(log.receipt(receipt.leaf_index));
      expect(JSON.parse(receipt.json.toString())).toMatchObject({
        id: receipt.log_entry_id,
        entry_hash: receipt.entry_hash,
        timestamp: receipt.timestamp,
      });
      expect(receipt.sth.tree_size).toBe(receipt.leaf_index + 1);
    }
    const both = await log.append([event, event]);
    expect(both.map(({ leaf_index }) => leaf_index)).toEqual([7, 8]);
    expect(await log.append([])).toEqual([]);
  });
});

describe("a head on demand", () => {
  test("cannot be had from a signer that is gone, and why is said", async () => {
    const signer = openSigner();
    const { log } = await openTestLog({ signer });
    await log.append(event);
    signer.isGone = true;
    await expect(log.signHead()).rejects.toMatchObject({
      code: "signer-unavailable",
      message: "The operator key cannot sign.",
      cause: expect.objectContaining({ message: "token removed" }),
    });
  });

  test("is the operator's, with every member", async () => {
    const { log } = await openTestLog({ clock: () => NOON + 7 });
    await expect(log.signHead()).rejects.toMatchObject({
      code: "precondition-failed",
      message: "The log is empty; there is no tree to sign.",
    });
    await log.append([event, event]);
    const head = await log.signHead();
    const { root_hash } = log.treeHead()!;
    const signature = expect.any(String);
    expect(head).toEqual({
      tree_size: 2,
      root_hash,
      signature,
      timestamp: at(7),
      key_id: testOperator.fingerprint,
      tree_version: 2,
    });
    const message = Buffer.from(`${root_hash}:2:${at(7)}`);
    const key = createPublicKey(testOperator.public.pem);
    expect(opensslVerify(null, message, key, Buffer.from(head.signature, "base64"))).toBe(true);
  });

  test("is not earlier than the stored head of its size, where the log grew with the same batch", async () => {
    let now = 0;
    const { log } = await openTestLog({ clock: () => NOON + now++ });
    await log.append(event);
    const [head] = await Promise.all([log.signHead(), log.append(event)]);
    expect(log.batches).toBe(2);
    expect(head).toMatchObject({ tree_size: 2, timestamp: log.treeHead(2)!.timestamp });
    expect(head.timestamp > log.entry(2)!.timestamp).toBe(true);
  });
});

test("a batch without entries has no head, so its end does not move the time", async () => {
  // The log's creation, a command that only looks, the end of its batch, and an append.
  const moments = [0, 100, 900, 200];
  const { log } = await openTestLog({ clock: () => NOON + (moments.length > 1 ? moments.shift()! : moments[0]!) });
  expect(await runIn(log, ({ timestamp }) => timestamp)).toMatchObject({ value: at(100) });
  expect(await log.append(event)).toMatchObject({ timestamp: at(200), sth: { timestamp: at(200) } });
});

test("the beginning of a log is written down once", async () => {
  const { log, path } = await openTestLog({ clock: () => NOON });
  const meta = log.row("meta", "log");
  expect(meta).toMatchObject({ created_at: at(0), key_id: testOperator.fingerprint });
  await log.close();
  const { log: again } = await openTestLog({ path, clock: () => NOON + 5 });
  expect(again.row("meta", "log")).toEqual(meta);
});

test("an event of the operator's own is refused, and what the command did besides is undone", async () => {
  const { log } = await openTestLog();
  const refused = log.append([event, { event_type: "operator_key_rotation", payload: {} }]);
  await expect(refused).rejects.toMatchObject({ code: "forbidden" });
  expect(log.size).toBe(0);
});

describe("what a signer answers", () => {
  const key = importPublicKey(testOperator.public.pem);
  const messages = [Buffer.from("a"), Buffer.from("b")];
  const answering = (answer: unknown): Pick<Signer, "sign"> => ({ sign: async () => answer as Uint8Array[] });

  test("is copied, one signature after the other", async () => {
    const right = await testOperator.sign(messages);
    expect(await signatures(answering(right), key, messages)).toEqual(Buffer.concat(right));
    expect(await signatures(testOperator, key, messages)).toEqual(Buffer.concat(right));
  });

  test.each([
    ["nothing in a list", []],
    ["too few", [new Uint8Array(64)]],
    ["holes", new Array(2)],
  ])("is refused if it is %s", async (_, answer) => {
    await expect(signatures(answering(answer), key, messages)).rejects.toThrow(
      new RangeError("The signer did not answer with its signature of each message."),
    );
  });

  test("is refused if one before the last is no signature of its length", async () => {
    const [, last] = await testOperator.sign(messages);
    for (const first of [new Uint8Array(63), new Uint8Array(65), "b".repeat(64)])
      await expect(signatures(answering([first, last]), key, messages)).rejects.toThrow(RangeError);
  });
});
