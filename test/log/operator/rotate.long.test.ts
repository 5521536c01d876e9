/** Rotations of the operator key of a real log: every head is the key's whose term its size is in. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { type OperatorKey, operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { checkLog } from "#cairnlog/engine/log/check/fsck.js";
import { rebuildLog } from "#cairnlog/engine/log/check/repair.js";
import { openHistory } from "#cairnlog/engine/log/history/history.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import type { Log } from "#cairnlog/engine/log/log.js";
import { Operators } from "#cairnlog/engine/log/operator/operators.js";
import { finishEntry } from "#cairnlog/engine/log/state/entry.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { canonicalJson, OperatorKeys, parsePublicKey, verifyTreeHead } from "#cairnlog/engine/verify/index.js";
import { MAP_SIZE, openTestLog, openTestReader, temporaryFolder, testOperator, testPool } from "../harness.js";
import { chain } from "../history/entries.js";

const ALGORITHMS = ["ed25519", "ecdsa-p256", "rsa-2048"] as const;
const newKey = (algorithm: (typeof ALGORITHMS)[number] = "ed25519"): OperatorKey =>
  operatorKey(generatePrivateKey(algorithm));
const rotate = (path: string, from: OperatorKey, to: OperatorKey) =>
  rotateOperatorKey({ path, from, to, projection: noProjection });

const events = (count: number) => Array.from({ length: count }, (_, i) => ({ event_type: "x", payload: { i } }));

/** A log of `sizes[0]` entries of the first key, then a rotation and `sizes[1]` entries of the second, and so on. */
async function rotated(keys: readonly OperatorKey[], sizes: readonly number[]): Promise<string> {
  const path = temporaryFolder();
  for (const [i, signer] of keys.entries()) {
    if (i > 0) await rotate(path, keys[i - 1]!, signer);
    const { log } = await openTestLog({ path, signer });
    if (sizes[i]) await log.append(events(sizes[i]!));
    await log.close();
  }
  return path;
}

/** The key that must have signed the head of a size. */
function signerOf(keys: readonly OperatorKey[], sizes: readonly number[], size: number): OperatorKey {
  let end = 0;
  for (const [i, key] of keys.entries()) {
    end += sizes[i]! + (i > 0 ? 1 : 0);
    if (size <= end) return key;
  }
  throw new RangeError("beyond the log");
}

test("nothing is rotated under a clock that has jumped ahead: the log would stay at its time", async () => {
  const [first, second] = [newKey(), newKey()];
  const path = await rotated([first], [1]);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 365 * 86_400_000 });
  onTestFinished(() => void vi.useRealTimers());
  await expect(rotate(path, first, second)).rejects.toMatchObject({ code: "clock-suspect" });
  vi.useRealTimers();
  expect((await rotate(path, first, second)).fingerprint).toBe(second.fingerprint);
});

test("heads of every size verify under the key of their term, and under no other", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ algorithm: fc.constantFrom("ed25519", "ecdsa-p256"), size: fc.nat(5) }), {
        minLength: 1,
        maxLength: 4,
      }),
      async (terms) => {
        const keys = terms.map(({ algorithm }) => newKey(algorithm as "ed25519"));
        // The first key signs something before it is retired.
        const sizes = terms.map(({ size }, i) => (i === 0 ? size + 1 : size));
        const path = await rotated(keys, sizes);
        const { log } = await openTestLog({ path, signer: keys.at(-1)! });
        const chain = await OperatorKeys.verify(log.operators.chain, parsePublicKey(keys[0]!.public.pem));
        for (let size = 1; size <= log.size; size++) {
          const head = log.treeHead(size)!;
          const own = signerOf(keys, sizes, size);
          expect(head.key_id).toBe(own.fingerprint);
          expect(await verifyTreeHead(head, chain)).toBe(true);
          for (const key of keys) expect(await verifyTreeHead(head, parsePublicKey(key.public.pem))).toBe(key === own);
        }
        expect(await log.verify()).toMatchObject({ valid: true, errors: [] });
        await log.close();
      },
    ),
    { numRuns: 8 },
  );
});

describe("a log of three keys", () => {
  const keys = ALGORITHMS.map(newKey);
  const sizes = [3, 2, 2];
  const build = () => rotated(keys, sizes);

  test("goes on under the newest alone, and says which it needs", async () => {
    const path = await build();
    for (const [i, key] of keys.slice(0, 2).entries())
      await expect(openTestLog({ path, signer: key })).rejects.toMatchObject({
        code: "wrong-operator",
        message: expect.stringMatching(
          new RegExp(
            `signed by operator key ${keys[2]!.fingerprint}; .*${key.fingerprint} was retired by entry ${[4, 7][i]}`,
          ),
        ),
      });
    await expect(openTestLog({ path, signer: newKey() })).rejects.toMatchObject({
      code: "wrong-operator",
      message: expect.stringMatching(new RegExp(`signed by operator key ${keys[2]!.fingerprint}, not by`)),
    });
    const { log } = await openTestLog({ path, signer: keys[2]! });
    expect(log.size).toBe(9);
    expect((await log.append({ event_type: "x", payload: {} })).sth.key_id).toBe(keys[2]!.fingerprint);
  });

  test("shows its chain, whichever of its keys a reader has", async () => {
    const path = await build();
    for (const key of keys) {
      const reader = await openTestReader(path, key);
      expect(reader.operators.chain).toMatchObject([
        { key_id: keys[0]!.fingerprint, algorithm: "ed25519", from_size: 1, until_size: 3, rotation: null },
        { key_id: keys[1]!.fingerprint, from_size: 4, until_size: 6, rotation: { entry_id: 4 } },
        { key_id: keys[2]!.fingerprint, from_size: 7, until_size: null, rotation: { entry_id: 7 } },
      ]);
      expect(Operators.ofChain(reader.operators.chain).chain).toEqual(reader.operators.chain);
      expect(await reader.verify()).toMatchObject({ valid: true });
    }
    await expect(openTestReader(path, newKey())).rejects.toMatchObject({ code: "wrong-operator" });
  });

  test("passes a check with any of its keys, and a rebuild makes its chain again", async () => {
    const path = await build();
    const check = async (work: (store: ReturnType<typeof openStore>) => Promise<void>) => {
      const store = openStore({ path, mapSize: MAP_SIZE });
      await work(store);
      await store.close();
    };
    const options = (key: OperatorKey) => ({
      path,
      mapSize: MAP_SIZE,
      operatorKey: key.public.pem,
      projection: noProjection,
      pool: testPool,
    });
    await check(async (store) => {
      for (const key of keys) expect(await checkLog(store, options(key))).toMatchObject({ ok: true, entries: 9 });
      expect(await checkLog(store, options(newKey()))).toMatchObject({ ok: false });
      const { first_key_id: _, ...forgetful } = store.get("meta", "log")!;
      const rows = [
        { table: "operatorRotations", key: 3, row: undefined },
        { table: "meta", key: "log", row: forgetful },
      ] as const;
      const after = store.position().sequence;
      await store.commit({ after, position: null, batches: [], rows, tiles: [] });
      const report = await checkLog(store, options(keys[2]!));
      expect(report.counts).toEqual({ entries: 0, derived: 2, private: 0 });
      expect(await rebuildLog(store, report, options(keys[2]!))).toMatchObject({ ok: true });
    });
    const { log } = await openTestLog({ path, signer: keys[2]! });
    expect(log.operators.chain).toHaveLength(3);
  });

  test("is copied with its heads, by those who know the first key, or the chain", async () => {
    const path = await build();
    const { log } = await openTestLog({ path, signer: keys[2]! });
    for (const [key, operators] of [
      [keys[0]!, undefined],
      [keys[2]!, log.operators.chain],
    ] as const) {
      const copy = temporaryFolder();
      const given = { path: copy, operatorKey: key.public.pem, mapSize: MAP_SIZE };
      for (const end of [2, 4, 9]) {
        // Closed and opened again on the way: what is known of the keys is on disk, or comes with the chain.
        const writer = await openHistory({ ...given, ...(operators && { operators }) });
        await writer.add(itemsOf(log, writer.size, end));
        await writer.close();
      }
      const reader = await openTestReader(copy, keys[1]);
      expect(reader.operators.chain).toEqual(log.operators.chain);
      expect(await reader.verify()).toMatchObject({ valid: true, entry_count: 9 });
    }
    const writer = await openHistory({ path: temporaryFolder(), operatorKey: keys[1]!.public.pem, mapSize: MAP_SIZE });
    await expect(writer.add(itemsOf(log, 0, 9))).rejects.toMatchObject({ code: "wrong-operator" });
    await writer.close();
  });

  test("is imported without its heads by a key that it does not retire", async () => {
    const { log } = await openTestLog({ path: await build(), signer: keys[2]! });
    const entries = [...log.entries()];
    const into = (signer: OperatorKey) => {
      const path = join(temporaryFolder(), "log");
      return importEntries({ path, signer, mapSize: MAP_SIZE }, entries).then(() => path);
    };
    await expect(into(keys[0]!)).rejects.toMatchObject({
      code: "wrong-operator",
      message: expect.stringMatching(/^Line 4: .*hands the log over/),
    });
    for (const signer of [keys[2]!, newKey()]) {
      const { log: imported } = await openTestLog({ path: await into(signer), signer });
      // What another log records of its keys is history here.
      expect(imported.operators.chain).toMatchObject([{ key_id: signer.fingerprint, from_size: 1, until_size: null }]);
      expect(await imported.verify()).toMatchObject({ valid: true });
    }
  });
});

test("an imported entry that has the name of a rotation, and not its form, hands nothing over", async () => {
  const path = join(temporaryFolder(), "log");
  const payload = { old_fingerprint: testOperator.fingerprint };
  const entries = chain([{ event_type: "operator_key_rotation", payload }]);
  await importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, entries);
  const { log } = await openTestLog({ path });
  expect(log.operators.chain).toHaveLength(1);
  expect(await log.verify()).toMatchObject({ valid: true, entry_count: 1 });
});

const itemsOf = (log: Log, from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => ({
    entry: log.entryJsonAt(from + i)!,
    otsProof: null,
    head: log.treeHead(from + i + 1),
  }));

describe("a rotation is refused", () => {
  test("from a key that is not the operator's, or no more", async () => {
    const [first, second] = [newKey(), newKey()];
    const path = await rotated([first, second], [1, 0]);
    await expect(rotate(path, newKey(), newKey())).rejects.toMatchObject({ code: "wrong-operator" });
    await expect(rotate(path, first, newKey())).rejects.toMatchObject({ code: "wrong-operator" });
  });

  test("to the same key, and to one that was used before", async () => {
    const [first, second] = [newKey(), newKey()];
    const path = await rotated([first, second], [1, 0]);
    for (const to of [second, first])
      await expect(rotate(path, second, to)).rejects.toMatchObject({
        code: "invalid-input",
        message: expect.stringContaining("is or was an operator key"),
      });
  });

  test("of a log without a head", async () => {
    const { path, log } = await openTestLog();
    await log.close();
    await expect(rotate(path, testOperator, newKey())).rejects.toMatchObject({ code: "precondition-failed" });
  });

  test("when one of the keys cannot sign, or signs something else; then nothing has changed", async () => {
    const path = await rotated([testOperator], [2]);
    const to = newKey();
    const silent = { ...to, sign: () => Promise.reject(new Error("no token")) };
    const other = { ...to, sign: newKey().sign };
    for (const bad of [silent, other])
      await expect(rotate(path, testOperator, bad)).rejects.toMatchObject({ code: "signer-unavailable" });
    const { log } = await openTestLog({ path });
    expect(log.size).toBe(2);
    expect(log.operators.chain).toHaveLength(1);
  });

  test("as an event like any other", async () => {
    const { log } = await openTestLog();
    await expect(log.append({ event_type: "operator_key_rotation", payload: {} })).rejects.toMatchObject({
      code: "forbidden",
    });
    expect(log.size).toBe(0);
  });
});

describe("a copy refuses a rotation", () => {
  const [first, second] = [newKey(), newKey()];
  type Change = (payload: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>;

  test.each<[string, Change, RegExp]>([
    ["of another place", () => ({ tree_size: 1 }), /about the first 1 entries/],
    ["over another root", () => ({ root_hash: "ab".repeat(32) }), /root is not that/],
    [
      "that the old key has not signed",
      (payload) => ({ old_key_signature: payload.new_key_signature }),
      new RegExp(`not signed by ${first.fingerprint}`),
    ],
    [
      "that the new key has not signed",
      (payload) => ({ new_key_signature: payload.old_key_signature }),
      new RegExp(`not signed by ${second.fingerprint}`),
    ],
    ["to another public key", () => ({ public_key: newKey().public.pem }), /new public key/],
    ["from another public key", () => ({ old_public_key: newKey().public.pem }), /old public key/],
  ])("%s", async (_, change, sentence) => {
    const { log } = await openTestLog({ path: await rotated([first, second], [2, 1]), signer: second });
    const entry = JSON.parse(log.entryJsonAt(2)!.toString());
    const changed = canonicalJson({ ...entry.payload, ...change(entry.payload) });
    const { text } = finishEntry({ ...entry, canonicalPayload: changed }, entry.previous_hash, null);
    const path = temporaryFolder();
    const writer = await openHistory({ path, operatorKey: first.public.pem, mapSize: MAP_SIZE });
    const items = itemsOf(log, 0, 3);
    items[2] = { ...items[2]!, entry: Buffer.from(text) };
    await expect(writer.add(items)).rejects.toMatchObject({ message: expect.stringMatching(sentence) });
    expect(writer.size).toBe(0);
    await writer.add(itemsOf(log, 0, 4));
    expect(writer.size).toBe(4);
    await writer.close();
    expect(readdirSync(path)).toContain("data.mdb");
  });
});
