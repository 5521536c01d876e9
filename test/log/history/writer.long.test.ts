/** Writing a history from elsewhere: the checks, the result on disk, and where a later import continues. */
import { createPrivateKey } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { type HistoryItem, type HistoryWriter, openHistory } from "#cairnlog/engine/log/history/history.js";
import { acceptClock } from "#cairnlog/engine/log/state/clock.js";
import { openTestLog, temporaryFolder, testOperator } from "../harness.js";
import { chain, line, type MadeEntry, momentNumber, sha256, signedHead, type Wanted } from "./entries.js";

const MAP_SIZE = 2 ** 30;
const pem = generatePrivateKey("ed25519");
const operator = operatorKey(pem);
const key = createPrivateKey(pem);

const writers = new Set<HistoryWriter>();
afterEach(async () => {
  for (const writer of writers) await writer.close();
  writers.clear();
});

async function open(path = temporaryFolder(), operatorPem = operator.public.pem) {
  const writer = await openHistory({ path, operatorKey: operatorPem, mapSize: MAP_SIZE });
  writers.add(writer);
  return { writer, path };
}

const item = (entry: object): HistoryItem => ({ entry: line(entry), otsProof: null, head: null });
const headed = (entries: readonly MadeEntry[], n: number, version: 1 | 2 = 2): HistoryItem => {
  const digests = entries.slice(0, n + 1).map(({ entry_hash }) => entry_hash);
  const at = { key, fingerprint: operator.fingerprint, timestamp: momentNumber(1000 + n), version };
  return { ...item(entries[n]!), head: signedHead(digests, at) };
};

test("entries without heads, then entries with heads: the log opened on them has them all, and goes on", async () => {
  const entries = chain([...Array(300).fill({}), ...Array(20).fill({ chain_version: 2 })] as Wanted[]);
  const { writer, path } = await open();
  await writer.add(entries.slice(0, 300).map(item));
  await writer.add(entries.slice(300).map((_, i) => headed(entries, 300 + i)));
  expect([writer.size, writer.lastHash]).toEqual([320, entries.at(-1)!.entry_hash]);
  await writer.close();

  // The entries are of 2020.
  acceptClock(path);
  const { log } = await openTestLog({ path, signer: operator });
  expect([...log.entries()]).toEqual(entries);
  expect(log.treeHead(300)).toBeNull();
  expect(log.treeHead(301)).toEqual(headed(entries, 300).head);
  expect(log.stateDifferences()).toEqual([]);
  await log.append({ event_type: "note", payload: {} });
  expect(log.head()).toMatchObject({ id: 321, chain_version: 2, previous_hash: entries.at(-1)!.entry_hash });
  expect(await log.verify()).toEqual({ valid: true, entry_count: 321, errors: [], warnings: [] });
});

test("it goes on where it stopped, with heads under either lens, checked in the pool or not", async () => {
  const pool = createPool(1);
  const entries = chain(Array(40).fill({ chain_version: 2 }));
  const path = temporaryFolder();
  for (let n = 0; n < 40; n += 8) {
    const writer = await openHistory({ path, operatorKey: operator.public.pem, mapSize: MAP_SIZE, pool });
    expect(writer.size).toBe(n);
    await writer.add(entries.slice(n, n + 8).map((_, i) => headed(entries, n + i, n < 16 ? 1 : 2)));
    await writer.close();
  }
  await pool.close();
  const { log } = await openTestLog({ path, signer: operator });
  expect(log.treeHead(16)).toMatchObject({ tree_version: 1 });
  expect(log.treeHead(40)).toMatchObject({ tree_version: 2 });
  expect(await log.verify()).toMatchObject({ valid: true, errors: [] });
});

test("an entry is serialised like this log's entries; values do not change", async () => {
  const [first] = chain([{ timestamp: "2020-01-01 00:00:00", chain_version: null, payload: { b: 1, a: "é" } }]);
  const { entry_hashes, ...rest } = first!;
  const { writer, path } = await open();
  await writer.add([
    {
      entry: Buffer.from(` ${JSON.stringify({ stray: 1, entry_hashes, ...rest }, null, 2)}`),
      otsProof: null,
      head: null,
    },
  ]);
  await writer.close();
  const { log } = await openTestLog({ path, signer: operator });
  const { id, timestamp, event_type, previous_hash, entry_hash } = first!;
  expect(log.entryJson(1)!.toString()).toBe(
    JSON.stringify({ id, timestamp, event_type, payload: { a: "é", b: 1 }, previous_hash, entry_hash, entry_hashes }),
  );
});

const sound = chain([{}, {}, { chain_version: 2 }, { chain_version: 2, timestamp: momentNumber(9) }]);
const changed = (n: number, change: object): HistoryItem => item({ ...sound[n]!, ...change });
const digest = (algorithm: string, digest_hex: string, is_primary = false) => ({ algorithm, digest_hex, is_primary });
const REFUSED: readonly [string, number, HistoryItem, RegExp][] = [
  ["no JSON", 0, { entry: Buffer.from("{"), otsProof: null, head: null }, /Malformed JSON/],
  ["no UTF-8", 0, { entry: Buffer.from([0x22, 0xff, 0x22]), otsProof: null, head: null }, /UTF-8/],
  ["no object", 0, item([]), /not a log entry/],
  ["no payload", 0, changed(0, { payload: undefined }), /\/payload is missing/],
  ["duplicate members", 0, { ...item({}), entry: Buffer.from('{"id":1,"id":2}') }, /more than once/],
  ["a lone surrogate", 0, { ...item({}), entry: Buffer.from('{"id":1,"payload":{"a":"\\ud800"}}') }, /surrogate/],
  ["another payload", 1, changed(1, { payload: { n: 2 } }), /does not hash/],
  ["another version", 1, changed(1, { chain_version: 2 }), /does not hash/],
  ["version 3", 1, changed(1, { chain_version: 3 }), /chain_version/],
  ["a wrong link", 1, changed(1, { previous_hash: sha256("x") }), /previous_hash is not/],
  ["a first entry with a link", 0, changed(0, { previous_hash: sha256("x") }), /lacks its beginning/],
  ["an id that does not ascend", 1, changed(1, { id: 1 }), /does not ascend/],
  ["an id that is no integer", 1, changed(1, { id: 1.5 }), /\/id/],
  ["no timestamp", 1, changed(1, { timestamp: "yesterday" }), /ISO 8601/],
  ["a timestamp out of range", 1, changed(1, { timestamp: "9999-01-01T00:00:00Z" }), /2255/],
  ["a changed version 2 timestamp", 2, changed(2, { timestamp: momentNumber(8) }), /does not hash/],
  ["a version 2 timestamp without offset", 2, changed(2, { timestamp: "2020-01-01T00:03:00" }), /offset/],
  [
    "a step back before version 2",
    2,
    item(chain([{ chain_version: 2, timestamp: momentNumber(0) }], sound[1])[0]!),
    /earlier than that/,
  ],
  [
    "a wrong further digest",
    1,
    changed(1, { entry_hashes: [...sound[1]!.entry_hashes, digest("sha2-512", "00".repeat(64))] }),
    /sha2-512/,
  ],
  ["no primary digest", 1, changed(1, { entry_hashes: [] }), /primary/],
  [
    "a digest twice",
    1,
    changed(1, { entry_hashes: [...sound[1]!.entry_hashes, digest("x", "00000000"), digest("x", "00000000")] }),
    /more than once/,
  ],
  [
    "a digest that is no hex",
    1,
    changed(1, { entry_hashes: [...sound[1]!.entry_hashes, digest("x", "no")] }),
    /hexadecimal/,
  ],
  ["a proof that is no base64", 1, changed(1, { ots_proof: "!" }), /base64/],
];
test.each(REFUSED)("%s is refused, by number, and nothing is written", async (_, n, bad, message) => {
  const { writer } = await open();
  const before = sound.slice(0, n).map(item);
  await expect(writer.add([...before, bad])).rejects.toMatchObject({
    message: expect.stringMatching(message),
    details: [{ path: `/${n}` }],
  });
  expect([writer.size, writer.lastHash]).toEqual([0, null]);
  await writer.add(sound.map(item));
  expect(writer.size).toBe(sound.length);
});

const BAD_HEADS: readonly [string, object, RegExp][] = [
  ["another root", { root_hash: sha256("x") }, /root is not/],
  ["the other lens", { tree_version: 1 }, /root is not/],
  ["another size", { tree_size: 3 }, /size 3/],
  ["another key", { key_id: testOperator.fingerprint }, /not by the operator/],
  ["another time", { timestamp: momentNumber(1500) }, /does not verify/],
  ["another spelling", { timestamp: "2020-01-02T00:00:00Z" }, /canonical/],
  ["a broken signature", { signature: Buffer.alloc(64).toString("base64") }, /does not verify/],
  ["no signature", { signature: "?" }, /base64/],
];
test.each(BAD_HEADS)("a head with %s is refused", async (_, change, message) => {
  const { writer } = await open();
  const good = headed(sound, 1);
  await expect(writer.add([item(sound[0]!), { ...good, head: { ...good.head!, ...change } }])).rejects.toMatchObject({
    message: expect.stringMatching(message),
    details: [{ path: "/1/head" }],
  });
  expect(writer.size).toBe(0);
  await writer.add([item(sound[0]!), good, item(sound[2]!)]);
});

test("of two wrong heads one is named, and the other does not end the process", async () => {
  const unheard: unknown[] = [];
  const hear = (reason: unknown) => unheard.push(reason);
  process.on("unhandledRejection", hear);
  const { writer } = await open();
  const spoilt = (n: number, change: object): HistoryItem => {
    const good = headed(sound, n);
    return { ...good, head: { ...good.head!, ...change } };
  };
  const broken = spoilt(1, { signature: Buffer.alloc(64).toString("base64") });
  const adding = writer.add([item(sound[0]!), broken, spoilt(2, { root_hash: sha256("x") })]);
  await expect(adding).rejects.toMatchObject({ code: "invalid-input", details: [{ path: "/2/head" }] });
  await nextTurn();
  process.off("unhandledRejection", hear);
  expect(unheard).toEqual([]);
  expect(writer.size).toBe(0);
});

test("another operator's log is refused", async () => {
  const { writer, path } = await open();
  await writer.add([item(sound[0]!)]);
  await writer.close();
  await expect(open(path, testOperator.public.pem)).rejects.toMatchObject({ code: "wrong-operator" });
});

test("a copy that has only some heads verifies", async () => {
  const { writer, path } = await open();
  await writer.add([item(sound[0]!), headed(sound, 1), item(sound[2]!), headed(sound, 3)]);
  await writer.close();
  const { log } = await openTestLog({ path, signer: operator });
  expect([1, 2, 3, 4].map((size) => log.treeHead(size)?.tree_size)).toEqual([undefined, 2, undefined, 4]);
  expect(await log.verify()).toMatchObject({ valid: true, errors: [] });
});
