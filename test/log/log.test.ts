import { createHash, createPublicKey, verify as opensslVerify } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { CairnlogError } from "#cairnlog/engine/base/error.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openFaultyLog, openTestLog, openTestReader, temporaryFolder, testOperator } from "./harness.js";
import { runIn } from "./inline.js";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const event = (n: number) => ({ event_type: "note", payload: { n } });
const failsWith = (code: string) => expect.objectContaining({ code }) as unknown as CairnlogError;

describe("append", () => {
  test.each([
    ["no type", { payload: {} }],
    ["an empty type", { event_type: "", payload: {} }],
    ["a type that is no text", { event_type: 1, payload: {} }],
    ["no payload", { event_type: "note" }],
    ["a list as payload", { event_type: "note", payload: [] }],
    ["a payload that is a number as JSON", { event_type: "note", payload: { toJSON: () => 5 } }],
    ["nothing", undefined],
  ])("of an event with %s is refused, also among others, and appends nothing", async (_, wrong) => {
    const { log } = await openTestLog();
    const refusal = {
      code: "invalid-input",
      message: "append takes events: { event_type, payload }, a text that is not empty and an object.",
    };
    await expect(log.append(wrong as never)).rejects.toMatchObject(refusal);
    await expect(log.append([event(1), wrong as never])).rejects.toMatchObject(refusal);
    expect(log.size).toBe(0);
  });

  test("takes what the events are at the call: neither their lists, nor they, nor their payloads are read later", async () => {
    const { log } = await openTestLog();
    const reused = { event_type: "note", payload: { n: 0 as unknown } };
    const list = [reused, event(1)];
    const appended = log.append(list);
    list.length = 0;
    reused.payload.n = 5n;
    reused.event_type = "";
    expect(await appended).toHaveLength(2);
    expect(log.entry(1)).toMatchObject(event(0));
    const odd = { event_type: "note", payload: { at: new Date(0), toJSON: undefined } };
    await log.append(odd as never);
    expect(log.entry(3)).toMatchObject({ payload: { at: "1970-01-01T00:00:00.000Z" } });
    expect(await log.verify()).toMatchObject({ valid: true, entry_count: 3 });
  });

  test("a receipt as JSON has the entry, and no bytes, whoever gives it", async () => {
    const { log, path } = await openTestLog();
    const appended = await log.append(event(1));
    const { json: _, ...members } = appended;
    const entry = log.entry(1)!;
    const reader = await openTestReader(path);
    const given = [appended, log.receipt(0)!, reader.receipt(0)!];
    for (const receipt of given) {
      expect(JSON.parse(JSON.stringify(receipt))).toEqual({ ...members, entry });
      expect(receipt.json.toString()).toBe(JSON.stringify(entry));
    }
    const [inList] = await log.append([event(2)]);
    expect(JSON.parse(JSON.stringify(inList))).toMatchObject({ leaf_index: 1, entry: log.entry(2) });
  });

  test("the first entry, its hash and its head follow from the contract's definitions", async () => {
    const { log } = await openTestLog();
    const receipt = await log.append({ event_type: "note", payload: { b: 2, a: "é" } });
    const entry = log.entry(1)!;
    expect(entry).toMatchObject({
      id: 1,
      event_type: "note",
      payload: { a: "é", b: 2 },
      previous_hash: null,
      chain_version: 2,
    });
    expect(entry.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    const preimage = `service.log.entry.v2\0{"payload":{"a":"é","b":2},"previous_hash":null,"timestamp":"${entry.timestamp}"}`;
    expect(entry.entry_hash).toBe(sha256(preimage));
    expect(entry.entry_hashes).toEqual([{ algorithm: "sha2-256", digest_hex: entry.entry_hash, is_primary: true }]);
    expect(receipt).toMatchObject({ log_entry_id: 1, leaf_index: 0, entry_hash: entry.entry_hash });
    // With one leaf, the root is the leaf hash.
    expect(receipt.sth.root_hash).toBe(sha256(`\0${entry.entry_hash}`));
    const message = `${receipt.sth.root_hash}:1:${receipt.sth.timestamp}`;
    const key = createPublicKey(testOperator.public.pem);
    expect(opensslVerify(null, Buffer.from(message), key, Buffer.from(receipt.sth.signature, "base64"))).toBe(true);
    expect(receipt.sth.key_id).toBe(testOperator.fingerprint);
    expect(receipt.sth.timestamp >= entry.timestamp).toBe(true);
  });

  test("appends in flight together share few commits, and each has the head of its own size", async () => {
    const { log } = await openTestLog();
    const receipts = await Promise.all(Array.from({ length: 256 }, (_, n) => log.append(event(n))));
    expect(log.batches).toBeLessThanOrEqual(8);
    receipts.forEach((receipt, n) => {
      expect(receipt).toMatchObject({ log_entry_id: n + 1, leaf_index: n, sth: { tree_size: n + 1 } });
      expect(log.treeHead(n + 1)).toEqual(receipt.sth);
      expect(log.entry(n + 1)).toMatchObject({ payload: { n }, entry_hash: receipt.entry_hash });
    });
  });

  test("events given together are neighbours in one batch", async () => {
    const { log } = await openTestLog();
    const [, receipts] = await Promise.all([
      log.append(event(0)),
      log.append([event(1), event(2)]),
      log.append(event(3)),
    ]);
    expect(receipts.map((receipt) => receipt.leaf_index)).toEqual([1, 2]);
    expect([...log.entries()].map((entry) => entry.payload!.n)).toEqual([0, 1, 2, 3]);
  });

  test("entries are linked, ids count up, and a clock that steps back is clamped", async () => {
    const times = [1_700_000_000_000_000, 1_600_000_000_000_000, 1_700_000_000_000_005];
    const { log } = await openTestLog({ clock: () => times.shift() ?? 1_650_000_000_000_000 });
    for (let n = 0; n < 4; n++) await log.append(event(n));
    const entries = [...log.entries()];
    entries.forEach((entry, i) => {
      expect(entry.previous_hash).toBe(i ? entries[i - 1]!.entry_hash : null);
      if (i) expect(entry.timestamp >= entries[i - 1]!.timestamp).toBe(true);
      if (i) expect(log.treeHead(i + 1)!.timestamp >= log.treeHead(i)!.timestamp).toBe(true);
      expect(log.treeHead(i + 1)!.timestamp >= entry.timestamp).toBe(true);
    });
    expect((await log.verify()).valid).toBe(true);
  });

  test.each([
    ["one that is there twice", ["sha2-512", "sha3-256", "sha2-512"]],
    ["the primary one", ["sha2-256"]],
    ["a member of every object", ["toString"]],
  ])("further digests that no reader would take are refused: %s", async (_, digests) => {
    const refusal = { code: "invalid-input", message: "`digests` takes each of sha2-512, sha3-256, blake3 once." };
    await expect(openTestLog({ digests: digests as never })).rejects.toMatchObject(refusal);
  });

  test("further digests cover the same preimage", async () => {
    const { log } = await openTestLog({ digests: ["sha2-512", "sha3-256"] });
    await log.append(event(1));
    const { timestamp, entry_hashes } = log.entry(1)!;
    const preimage = `service.log.entry.v2\0{"payload":{"n":1},"previous_hash":null,"timestamp":"${timestamp}"}`;
    const digest = (name: string) => createHash(name).update(preimage).digest("hex");
    expect(entry_hashes.slice(1)).toEqual([
      { algorithm: "sha2-512", digest_hex: digest("sha512"), is_primary: false },
      { algorithm: "sha3-256", digest_hex: digest("sha3-256"), is_primary: false },
    ]);
    expect((await log.verify()).valid).toBe(true);
    // An entry is found by each of its digests.
    for (const { digest_hex } of entry_hashes)
      expect(log.match({ search: digest_hex.slice(0, 20) }, 0, 9)).toEqual({ total: 1, indexes: [0] });
    expect(log.stateDifferences()).toEqual([]);
  });

  test("a payload without canonical form is refused and leaves no trace", async () => {
    const { log } = await openTestLog();
    await expect(log.append([event(0), { event_type: "note", payload: { bad: "\ud800" } }])).rejects.toEqual(
      failsWith("not-i-json"),
    );
    expect(log.size).toBe(0);
    expect((await log.append(event(1))).leaf_index).toBe(0);
  });
});

describe("commands", () => {
  test("see what earlier commands of the same batch wrote, and a command that throws leaves no trace", async () => {
    const { log } = await openTestLog();
    const register = (fingerprint: string) =>
      runIn(log, (transaction) => {
        if (transaction.get("keys", fingerprint)) throw new Error("taken");
        transaction.put("keys", fingerprint, { pseudonym: fingerprint } as never);
        transaction.append({ event_type: "key", payload: { fingerprint } });
        if (fingerprint === "bad") throw new Error("after writing");
        return transaction.get("keys", fingerprint)!.pseudonym;
      });
    const names = ["a", "a", "bad", "b", "bad", "c"];
    const outcomes = await Promise.allSettled(names.map(register));
    const taken = outcomes.flatMap(({ status }, i) => (status === "fulfilled" ? [i] : []));
    expect(taken).toEqual([0, 3, 5]);
    // Each entry, its hash and its receipt are of the payload of its own command.
    const receipts = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? outcome.value.receipts : []));
    for (const [i, entry] of [...log.entries()].entries()) {
      const { timestamp, previous_hash } = entry;
      const payload = { fingerprint: names[taken[i]!] };
      expect(entry).toMatchObject({ id: i + 1, payload, entry_hash: receipts[i]!.entry_hash });
      const preimage = JSON.stringify({ payload, previous_hash, timestamp });
      expect(entry.entry_hash).toBe(sha256(`service.log.entry.v2\0${preimage}`));
      expect(JSON.parse(receipts[i]!.json.toString())).toMatchObject({ id: i + 1, payload });
      // Found under the terms of its own payload, and under nobody else's.
      expect(log.match({ search: entry.entry_hash }, 0, 9).indexes).toEqual([i]);
    }
    expect(log.size).toBe(3);
    expect(log.row("keys", "a")).toBeDefined();
    expect(log.row("keys", "bad")).toBeUndefined();
    await expect(register("a")).rejects.toThrow("taken");
  });

  test("ranges merge rows on disk with rows on their way", async () => {
    const { log } = await openTestLog();
    const row = (name: string) => ({ pseudonym: name }) as never;
    await runIn(log, (transaction) => {
      for (const name of ["a", "c", "e"]) transaction.put("keys", name, row(name));
    });
    const { value } = await runIn(log, (transaction) => {
      transaction.put("keys", "b", row("b"));
      transaction.put("keys", "c", undefined);
      transaction.put("keys", "z", row("z"));
      return transaction.range("keys", "a", "f").map(({ key }) => key);
    });
    expect(value).toEqual(["a", "b", "e"]);
  });
});

describe("limits of a log", () => {
  test.each([
    ["one byte", "x"],
    ["two bytes", "é"],
    ["three bytes", "€"],
    ["four bytes", "😀"],
  ])(
    "a batch ends with the event that brings it to 4 MiB, or with its 512th (characters of %s)",
    async (_, character) => {
      const { log, path } = await openTestLog();
      const text = character.repeat(Math.ceil(2 ** 20 / Buffer.byteLength(character)));
      const large = (n: number) => ({ event_type: "note", payload: { n, text } });
      await Promise.all(Array.from({ length: 11 }, (_, n) => log.append(large(n))));
      await Promise.all(Array.from({ length: 600 }, (_, n) => log.append(event(n))));
      const store = openStore({ path, mapSize: 2 ** 30 });
      const counts = [...store.batchKeys()].map((index) => store.batchAt(index)!.count);
      await store.close();
      expect(counts).toEqual([4, 4, 3, 512, 88]);
    },
  );

  test("appends beyond the queue limit are refused at once with `overloaded`, the others succeed", async () => {
    const { log } = await openTestLog({ queueLimit: 10 });
    const outcomes = await Promise.allSettled(Array.from({ length: 30 }, (_, n) => log.append(event(n))));
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(refused).toHaveLength(20);
    for (const outcome of refused) expect(outcome.reason).toEqual(failsWith("overloaded"));
    expect(log.size).toBe(10);
  });

  test("closing answers accepted commands and refuses the rest", async () => {
    const { log } = await openTestLog();
    const accepted = Array.from({ length: 50 }, (_, n) => log.append(event(n)));
    const closing = log.close();
    await expect(log.append(event(99))).rejects.toEqual(failsWith("closed"));
    expect((await Promise.all(accepted)).at(-1)!.leaf_index).toBe(49);
    await closing;
  });

  test("proofs and heads of sizes that are not on disk are refused", async () => {
    const { log } = await openTestLog();
    expect(log.treeHead()).toBeNull();
    expect(log.head()).toBeNull();
    expect(() => log.inclusionProof(0)).toThrow(failsWith("invalid-input"));
    await log.append(event(0));
    expect(log.treeHead(2)).toBeNull();
    expect(() => log.inclusionProof(1)).toThrow(failsWith("invalid-input"));
    expect(() => log.inclusionProof(0, { treeSize: 2 })).toThrow(failsWith("invalid-input"));
    expect(() => log.consistencyProof(0, 1)).toThrow(failsWith("invalid-input"));
    expect(() => log.consistencyProof(2, 1)).toThrow(failsWith("invalid-input"));
  });
});

/** What `read` throws. */
function errorOf(read: () => unknown): unknown {
  try {
    read();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("a log that is closed, or being closed, says so to whoever reads on, and does not blame the disk", async () => {
  const { log, path } = await openTestLog();
  await log.append([event(1), event(2), event(3)]);
  const reader = await openTestReader(path);
  for (const view of [reader, log]) {
    const snapshot = view.snapshot();
    const entries = view.entries()[Symbol.iterator]();
    entries.next();
    // A range of LMDB that is gone on with, given back, or left.
    const [range, given, left] = [1, 2, 3].map(() => snapshot.range("meta")[Symbol.iterator]());
    for (const begun of [range, given, left]) begun!.next();
    const reads: (() => unknown)[] = [
      () => view.entry(2),
      () => view.treeHead(),
      () => view.receipt(0),
      () => view.inclusionProof(0),
      () => view.consistencyProof(1, 2),
      () => view.digests(0, 1),
      () => view.row("meta", "log"),
      () => view.diskUsage,
      () => view.snapshot(),
      () => snapshot.get("meta", "log"),
      () => reader.refresh(),
    ];
    let isClosed = false;
    const closing = view.close().then(() => {
      isClosed = true;
    });
    for (let times = 1; !isClosed; times++) {
      const failed = reads.flatMap((read) => errorOf(read) ?? []);
      expect(failed).toEqual(failed.map(() => failsWith("closed")));
      await (times % 50 ? null : new Promise(setImmediate));
    }
    await closing;
    reads.push(
      () => entries.next(),
      () => range!.next(),
    );
    for (const read of reads) expect(read).toThrow(failsWith("closed"));
    given!.return?.();
    snapshot.close();
    await view.close();
  }
});

test("what is no whole number is no place in a log", async () => {
  const { log } = await openTestLog();
  await log.append([event(1), event(2), event(3)]);
  for (const wrong of [0.5, 1.5, Number.NaN, "1"] as number[]) {
    expect(() => log.inclusionProof(wrong)).toThrow(failsWith("invalid-input"));
    expect(() => log.inclusionProofJson(wrong)).toThrow(failsWith("invalid-input"));
    expect(() => log.inclusionProof(0, { treeSize: wrong })).toThrow(failsWith("invalid-input"));
    expect(() => log.consistencyProof(wrong, 3)).toThrow(failsWith("invalid-input"));
    expect(() => log.consistencyProof(1, wrong)).toThrow(failsWith("invalid-input"));
    expect([log.treeHead(wrong), log.receipt(wrong), log.entryAt(wrong)]).toEqual([null, null, undefined]);
    expect([log.tile(2, 0, wrong, 1), log.tile(2, 0, 0, wrong), log.digests(0, wrong)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  }
});

describe("opening", () => {
  test.each([
    ["queueLimit", Number.NaN],
    ["queueLimit", -1],
    ["minFreeBytes", Number.NaN],
    ["minFreeBytes", "64 MiB"],
    ["mapSize", Number.NaN],
  ])("a %s of %s is refused", async (option, value) => {
    const options = { path: temporaryFolder(), signer: testOperator, mapSize: MAP_SIZE, [option]: value };
    await expect(openLog(options)).rejects.toMatchObject({ code: "invalid-input" });
  });

  test("a log continues where it was, over many tiles", async () => {
    const path = temporaryFolder();
    for (let round = 0; round < 3; round++) {
      const { log } = await openTestLog({ path });
      expect(log.size).toBe(round * 300);
      await Promise.all(Array.from({ length: 300 }, (_, n) => log.append(event(n))));
      await log.close();
    }
    const { log } = await openTestLog({ path });
    expect(await log.verify()).toEqual({ valid: true, entry_count: 900, errors: [], warnings: [] });
    expect(log.stateDifferences()).toEqual([]);
  });

  test("another operator key is refused with a message that says what to do", async () => {
    const { log, path } = await openTestLog();
    await log.close();
    const other = operatorKey(generatePrivateKey("ecdsa-p256"));
    await expect(openTestLog({ path, signer: other })).rejects.toThrow(/signed by operator key sha256:/);
  });

  test("a log that is given no threads starts its own", async () => {
    const log = await openLog({ path: temporaryFolder(), signer: testOperator, mapSize: MAP_SIZE });
    await log.append(event(1));
    expect(await log.verify()).toMatchObject({ valid: true, entry_count: 1 });
    await log.close();
  });

  test("several logs live in one process", async () => {
    const p256 = operatorKey(generatePrivateKey("ecdsa-p256"));
    const rsa = operatorKey(generatePrivateKey("rsa-2048"));
    const opened = await Promise.all([openTestLog(), openTestLog({ signer: p256 }), openTestLog({ signer: rsa })]);
    await Promise.all(opened.flatMap(({ log }, i) => Array.from({ length: 20 + i }, (_, n) => log.append(event(n)))));
    for (const [i, { log }] of opened.entries())
      expect(await log.verify()).toMatchObject({ valid: true, entry_count: 20 + i });
  });

  test("a second writer of the same log is refused before it can fork it", async () => {
    const { log: first, path } = await openTestLog();
    // Without the lock, as in a container that does not see the other one.
    const { log: second } = await openFaultyLog({ path });
    await first.append(event(1));
    await expect(second.append(event(2))).rejects.toEqual(failsWith("storage-failed"));
    expect(first.entry(1)!.payload).toEqual({ n: 1 });
    // It has read the commits of the other writer, and continues after them.
    expect((await second.append(event(3))).leaf_index).toBe(1);
    await expect(first.append(event(4))).rejects.toEqual(failsWith("storage-failed"));
    expect((await first.verify()).valid).toBe(true);
  });
});
