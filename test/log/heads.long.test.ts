/** Findings of `verify` about heads: each fault is reported at its size, and no other fault is. */
import { createPrivateKey } from "node:crypto";
import { describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { type HistoryItem, openHistory } from "#cairnlog/engine/log/history/history.js";
import { parseTimestamp } from "#cairnlog/engine/log/state/clock.js";
import type { HeadRecord } from "#cairnlog/engine/store/schema/batch.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator } from "./harness.js";
import { chain, line, momentNumber, signedHead, type Wanted } from "./history/entries.js";
import { replaceHeads, signedAt } from "./tamper.js";

/** Number of entries in one task of `verify`. */
const CHUNK = 4096;
const BATCH = 512;
const SECOND = 1_000_000;
const pem = generatePrivateKey("ed25519");
const operator = operatorKey(pem);
const key = createPrivateKey(pem);

/**
 * A closed log of this number of batches of `length` entries. Every reading of its clock is a second after the last.
 */
async function builtLog(batches: number, length: number): Promise<string> {
  let now = 1_700_000_000 * SECOND;
  const clock = () => {
    now += SECOND;
    return now;
  };
  const { log, path } = await openTestLog({ clock });
  for (let n = 0; n < batches; n++)
    await log.append(Array.from({ length }, (_, i) => ({ event_type: "note", payload: { n, i } })));
  await log.close();
  return path;
}

/** A closed log with these imported entries, each with a head of the given tree version. */
async function historyWithHeads(wanted: readonly Wanted[], lens: (n: number) => 1 | 2): Promise<string> {
  const path = temporaryFolder();
  const entries = chain(wanted);
  const digests = entries.map(({ entry_hash }) => entry_hash);
  const items = entries.map((entry, n): HistoryItem => {
    const at = { key, fingerprint: operator.fingerprint, timestamp: momentNumber(1000 + n), version: lens(n) };
    return { entry: line(entry), otsProof: null, head: signedHead(digests.slice(0, n + 1), at) };
  });
  const writer = await openHistory({ path, operatorKey: operator.public.pem, mapSize: MAP_SIZE });
  await writer.add(items);
  await writer.close();
  return path;
}

/** Size, code and message of each error of a log. All of them must be about heads. */
async function faults(path: string, signer = testOperator): Promise<[size: number, code: string, message: string][]> {
  const { log } = await openTestLog({ path, signer });
  const { valid, errors } = await log.verify();
  await log.close();
  expect(valid).toBe(errors.length === 0);
  return errors.map(({ id, tree_size, code, message }) => {
    expect(id).toBeNull();
    return [tree_size!, code, message];
  });
}

const missing = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => [from + i, "head-missing", "There is no head of this size."]);
const decrease = (size: number) => [size, "timestamp-decrease", "The head is earlier than the head before it."];

/** Head number `i` with another timestamp. */
const timed = async (heads: HeadRecord[], i: number, size: number, timestamp: number, by = testOperator) =>
  heads.with(i, await signedAt(heads[i]!.root, size, timestamp, by));

describe("a head that is missing", () => {
  test("is named for every size without one", async () => {
    const path = await builtLog(3, 20);
    await replaceHeads(path, 20, () => null);
    expect(await faults(path)).toEqual(missing(21, 40));
  });

  test("is named in a task that finds no head at all", async () => {
    const path = await builtLog(CHUNK / BATCH + 1, BATCH);
    expect(await faults(path)).toEqual([]);
    await replaceHeads(path, CHUNK, () => null);
    expect(await faults(path)).toEqual(missing(CHUNK + 1, CHUNK + BATCH));
  });

  test("is not missed before the first head", async () => {
    const path = await builtLog(3, 20);
    await replaceHeads(path, 0, () => null);
    expect(await faults(path)).toEqual([]);
  });
});

describe("a head that is before the one before it", () => {
  test("is named in the middle of a batch", async () => {
    const path = await builtLog(2, 20);
    await replaceHeads(path, 20, (heads) => timed(heads, 7, 28, heads[7]!.timestamp - 1));
    expect(await faults(path)).toEqual([decrease(28)]);
  });

  test.each([
    ["a batch", 2, 20],
    ["a task", CHUNK / BATCH + 1, BATCH],
  ])("is named at the beginning of %s, and one of the same moment is not", async (_, batches, length) => {
    const path = await builtLog(batches, length);
    const size = (batches - 1) * length;
    let next = 0;
    await replaceHeads(path, size, (heads) => {
      next = heads[0]!.timestamp;
      return heads;
    });
    const last = (timestamp: number) =>
      replaceHeads(path, size - length, (heads) => timed(heads, length - 1, size, timestamp));
    await last(next);
    expect(await faults(path)).toEqual([]);
    await last(next + 1);
    expect(await faults(path)).toEqual([decrease(size + 1)]);
  });

  test("is named where the lens changes", async () => {
    const path = await historyWithHeads(Array(6).fill({}), (n) => (n < 3 ? 1 : 2));
    expect(await faults(path, operator)).toEqual([]);
    await replaceHeads(path, 0, (heads) => timed(heads, 2, 3, heads[2]!.timestamp + 61 * SECOND, operator));
    expect(await faults(path, operator)).toEqual([decrease(4)]);
  });
});

test("a head that is before its own entry is named, and one of the same moment is not", async () => {
  const path = await builtLog(1, 20);
  const { log } = await openTestLog({ path });
  const entryTime = parseTimestamp(log.entry(1)!.timestamp);
  await log.close();
  await replaceHeads(path, 0, (heads) => timed(heads, 0, 1, entryTime));
  expect(await faults(path)).toEqual([]);
  await replaceHeads(path, 0, (heads) => timed(heads, 0, 1, entryTime - 1));
  expect(await faults(path)).toEqual([[1, "timestamp-decrease", "The head is earlier than its entry."]]);
});

test("the timestamp of a version 1 entry binds no head", async () => {
  const path = await historyWithHeads([{ timestamp: momentNumber(5000) }, {}], () => 2);
  expect(await faults(path, operator)).toEqual([]);
});

describe.each([1, 2] as const)("heads of tree version %i", (version) => {
  const flipped = (bytes: Uint8Array, at: number) => {
    const copy = Buffer.from(bytes);
    copy[at]! ^= 1;
    return copy;
  };
  const changes: [string, (heads: HeadRecord[]) => HeadRecord[] | Promise<HeadRecord[]>, [number, string][]][] = [
    [
      "a wrong root that is signed",
      async (heads) => heads.with(2, await signedAt(flipped(heads[2]!.root, 31), 3, heads[2]!.timestamp, operator)),
      [[3, "root-mismatch"]],
    ],
    [
      "the first byte of a root altered",
      (heads) => heads.with(1, { ...heads[1]!, root: flipped(heads[1]!.root, 0) }),
      [
        [2, "root-mismatch"],
        [2, "signature-invalid"],
      ],
    ],
    [
      "a wrong signature",
      (heads) => heads.with(0, { ...heads[0]!, signature: flipped(heads[0]!.signature, 63) }),
      [[1, "signature-invalid"]],
    ],
    [
      "the signature of another size",
      (heads) => heads.with(3, { ...heads[3]!, signature: heads[2]!.signature }),
      [[4, "signature-invalid"]],
    ],
    [
      "another timestamp",
      (heads) => heads.with(3, { ...heads[3]!, timestamp: heads[3]!.timestamp + 1 }),
      [[4, "signature-invalid"]],
    ],
    [
      "a timestamp that is none",
      (heads) => heads.with(3, { ...heads[3]!, timestamp: Number.NaN }),
      [[4, "signature-invalid"]],
    ],
  ];
  test.each(changes)("%s is named", async (_, change, expected) => {
    // A log whose newest head is damaged does not open.
    const path = await historyWithHeads(Array(5).fill({ chain_version: 2 }), () => version);
    expect(await faults(path, operator)).toEqual([]);
    await replaceHeads(path, 0, change);
    expect((await faults(path, operator)).map(([size, code]) => [size, code])).toEqual(expected);
  });
});
