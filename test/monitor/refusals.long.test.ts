/** The data that a mirror accepts, and the kind of alarm for data that it refuses. */
import { generateKeyPairSync } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { type Entry, OperatorKeys, parsePublicKey, type TreeHead } from "#cairnlog/engine/verify/index.js";
import type { Misconduct } from "#cairnlog/server/monitor/alarm.js";
import { Mirror } from "#cairnlog/server/monitor/mirror.js";
import { chain, momentNumber, signedHead, type Wanted } from "../log/history/entries.js";
import { temporaryFolder } from "../server/harness.js";
import { noSignature, otherHash } from "./liar.js";

type Received = Parameters<Mirror["add"]>[0][number];

const operator = generateKeyPairSync("ed25519");
const stranger = generateKeyPairSync("ed25519");
const key = parsePublicKey(operator.publicKey.export({ type: "spki", format: "pem" }) as string);

/** Entries with their heads, each a minute after its entry. */
function withHeads(entries: readonly Entry[]): { entry: Entry; head: TreeHead }[] {
  return entries.map((entry, i) => ({ entry, head: headOf(entries.slice(0, i + 1), momentNumber(entry.id + 1)) }));
}
function headOf(entries: readonly Entry[], timestamp: string, by = operator): TreeHead {
  const digests = entries.map(({ entry_hash }) => entry_hash);
  return signedHead(digests, { key: by.privateKey, fingerprint: key.fingerprint, timestamp }) as TreeHead;
}

const made = (wanted: readonly Wanted[], after: Entry | null = null) =>
  chain(wanted, after as Parameters<typeof chain>[1]) as Entry[];
/** Five entries of version 2; two of them are mirrored when a test begins. */
const history = made(Array.from({ length: 5 }, () => ({ chain_version: 2 as const })));
const KNOWN = 2;

let path: string;
let mirror: Mirror;
beforeEach(async () => {
  path = temporaryFolder();
  mirror = await Mirror.open(path, OperatorKeys.of(key));
  expect(await mirror.add(withHeads(history).slice(0, KNOWN))).toBeNull();
  return () => mirror.close();
});

test("entries and heads that hold come back as they were, and the log is one that can be served", async () => {
  expect(await mirror.add(withHeads(history).slice(KNOWN))).toBeNull();
  expect(mirror.size).toBe(5);
  for (const [i, { entry, head }] of withHeads(history).entries()) {
    expect(mirror.entry(i)).toEqual(entry);
    expect(mirror.head(i + 1)).toEqual(head);
  }
  expect([mirror.entry(5), mirror.head(0), mirror.head(6)]).toEqual([undefined, undefined, undefined]);
  mirror.keepCheckpoint("a note", 5);
  expect(readFileSync(join(path, "checkpoint.txt"), "utf8")).toBe("a note");
  expect(readFileSync(join(path, "operator.pub.pem"), "utf8")).toBe(key.pem);
  expect(readdirSync(path).sort()).toEqual(["checkpoint.txt", "log", "operator.pub.pem"]);
  await mirror.close();
  await expect(mirror.add(withHeads(history))).rejects.toMatchObject({ code: "closed" });
  mirror = await Mirror.open(path, OperatorKeys.of(key));
  expect([mirror.size, mirror.entry(4)]).toEqual([5, history[4]]);
});

type Lie = (item: { entry: Entry; head: TreeHead }, before: Entry) => Received;
const entryLie =
  (change: (entry: Entry, before: Entry) => Partial<Entry>): Lie =>
  ({ entry, head }, before) => ({ entry: { ...entry, ...change(entry, before) }, head });
const headLie =
  (change: (head: TreeHead) => Partial<TreeHead>): Lie =>
  ({ entry, head }) => ({ entry, head: { ...head, ...change(head) } });
/** A digest with an unknown algorithm. */
const unknown = ({ entry_hashes }: Entry): Partial<Entry> => ({
  entry_hashes: [...entry_hashes, { algorithm: "x-unknown", digest_hex: "abcdef01", is_primary: false }],
});
const NO_PROOF = { ots_proof: "no base64" } as Partial<Entry>;
const relinked = (wish: Wanted, before: Entry | null) => made([wish], before)[0]!;

describe.each([0, 1])("item %d of those that come next", (i) => {
  const lies: Record<string, [Misconduct, Lie]> = {
    "another payload": ["bad-entry", entryLie(() => ({ payload: { forged: true } }))],
    "another hash": ["bad-entry", entryLie(({ entry_hash }) => ({ entry_hash: otherHash(entry_hash) }))],
    "a proof that is none": ["bad-entry", entryLie(() => NO_PROOF)],
    "a proof that is none, beside a digest that is not known": [
      "bad-entry",
      entryLie((entry) => ({ ...unknown(entry), ...NO_PROOF })),
    ],
    "a proof that is none, at the time of the entry before": [
      "bad-entry",
      entryLie((_, before) => ({
        ...relinked({ chain_version: 2, timestamp: before.timestamp }, before),
        ...NO_PROOF,
      })),
    ],
    "a link to another entry": [
      "broken-chain",
      entryLie((_, before) => ({
        ...relinked({ chain_version: 2 }, { ...before, entry_hash: otherHash(before.entry_hash) }),
      })),
    ],
    "a link to another entry, beside a digest that is not known": [
      "broken-chain",
      entryLie((_, before) => {
        const entry = relinked({ chain_version: 2 }, { ...before, entry_hash: otherHash(before.entry_hash) });
        return { ...entry, ...unknown(entry) };
      }),
    ],
    "a link to nothing": ["broken-chain", entryLie(({ id }) => ({ ...relinked({ chain_version: 2, id }, null) }))],
    "the id of the entry before": ["broken-chain", entryLie((_, { id }) => ({ id }))],
    "a smaller id than the entry before": ["broken-chain", entryLie((_, { id }) => ({ id: id - 1 }))],
    "a time before that of the entry before": [
      "time-reversal",
      entryLie((_, before) => ({ ...relinked({ chain_version: 2, timestamp: momentNumber(0) }, before) })),
    ],
    "a head with a forged signature": ["bad-signature", headLie(() => ({ signature: noSignature() }))],
    "a head of another key": [
      "bad-signature",
      ({ entry, head }) => ({
        entry,
        head: { ...head, ...headOf(history, head.timestamp, stranger), tree_size: head.tree_size },
      }),
    ],
    "a head of another root, signed": [
      "wrong-root",
      ({ entry, head }) => ({ entry, head: headOf(made(Array(head.tree_size).fill({})), head.timestamp) }),
    ],
    "a head of another root, at the time of the one before": [
      "wrong-root",
      ({ entry, head }, before) => ({
        entry,
        head: headOf(made(Array(head.tree_size).fill({})), momentNumber(before.id + 1)),
      }),
    ],
    "a head before the one before it": [
      "time-reversal",
      ({ entry, head }) => ({ entry, head: headOf(history.slice(0, head.tree_size), momentNumber(0)) }),
    ],
  };

  test.each(Object.entries(lies))("%s", async (_, [kind, lie]) => {
    const next = withHeads(history).slice(KNOWN);
    const before = history[KNOWN + i - 1]!;
    const told: Received[] = [...next];
    told[i] = lie(next[i]!, before);
    expect(await mirror.add(told)).toEqual({
      kind,
      detail: expect.stringMatching(/^.{8,}\.$/),
      entry: told[i]!.entry,
      other: before,
      shown: told[i]!.head,
    });
    // Nothing of it was mirrored, and the true entries are still accepted.
    expect(mirror.size).toBe(KNOWN);
    expect(await mirror.add(next)).toBeNull();
  });
});

describe("the first entry of a log", () => {
  let empty: Mirror;
  beforeEach(async () => {
    empty = await Mirror.open(temporaryFolder(), OperatorKeys.of(key));
    return () => empty.close();
  });
  const first = withHeads(history)[0]!;

  test.each<[string, Received, Misconduct]>([
    ["a link to what is not there", { entry: history[1]!, head: first.head }, "broken-chain"],
    ["a proof that is none", { ...first, entry: { ...first.entry, ...NO_PROOF } }, "bad-entry"],
    ["another root", { ...first, head: headOf(history.slice(1, 2), momentNumber(1)) }, "wrong-root"],
  ])("%s", async (_, item, kind) => {
    expect(await empty.add([item])).toMatchObject({ kind, entry: item.entry, other: null, shown: item.head });
    expect([empty.size, empty.entry(0), empty.head(1)]).toEqual([0, undefined, undefined]);
  });
});

test("history without heads is accepted, and checked by its own rules", async () => {
  const old = await Mirror.open(temporaryFolder(), OperatorKeys.of(key));
  // Version 1 has no order of time, and its timestamps are whatever was written down.
  const entries = made([
    {},
    { timestamp: "2019-05-05 05:05:05" },
    { timestamp: momentNumber(0) },
    { chain_version: 2 },
  ]);
  const received = entries.map((entry) => ({ entry, head: null }));
  const last = received.at(-1)!;
  const lie = { entry: { ...last.entry, ...NO_PROOF }, head: null };
  expect(await old.add([...received.slice(0, 3), lie])).toMatchObject({
    kind: "bad-entry",
    other: entries[2],
    shown: null,
  });
  const back = { entry: { ...entries[1]!, timestamp: "2018-01-01 00:00:00", ...NO_PROOF }, head: null };
  expect(await old.add([received[0]!, back])).toMatchObject({ kind: "bad-entry", other: entries[0] });
  expect(await old.add(received)).toBeNull();
  expect([old.size, old.entry(1), old.head(4)]).toEqual([4, entries[1], undefined]);
  await old.close();
});
