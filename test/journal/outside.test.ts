/** A journal guarantees that a record was appended, but not that it is right: a node checks what it applies. */
import { beforeAll, describe, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import type { Decided } from "#cairnlog/engine/journal/ledger.js";
import { encodeRecord, type JournalRecord, recordHash } from "#cairnlog/engine/journal/record.js";
import { leaveRecords } from "#cairnlog/engine/log/history/first-records.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import { formatTimestamp, microsOf, systemClock } from "#cairnlog/engine/log/state/clock.js";
import { noProjection, type Projection } from "#cairnlog/engine/log/state/projection.js";
import { type JournalPosition, NO_HASH } from "#cairnlog/engine/store/changeset.js";
import { Batch, type BatchHeads, packBatch } from "#cairnlog/engine/store/schema/batch.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import type { Entry } from "#cairnlog/engine/verify/tree/entry.js";
import { treeHeadMessage } from "#cairnlog/engine/verify/tree/treehead.js";
import { openTestLog, temporaryFolder, testOperator } from "../log/harness.js";
import { headsOf } from "../log/tamper.js";
import { decodeRecord, FakeJournal } from "./fakejournal.js";

/** A genesis record and two batches of three entries, each later than the one before. */
let records: readonly JournalRecord[];
beforeAll(async () => {
  const journal = new FakeJournal();
  let now = systemClock();
  const { log } = await openTestLog({ journal, clock: () => ++now });
  for (let batch = 0; batch < 2; batch++)
    await Promise.all([0, 1, 2].map((n) => log.append({ event_type: "note", payload: { n: 3 * batch + n } })));
  records = journal.records.map((bytes) => decodeRecord(bytes));
});

/** The second batch, taken apart. */
interface Parts {
  entries: Buffer[];
  digests: Buffer;
  heads: BatchHeads | null;
}

function repacked(change: (parts: Parts) => void): JournalRecord {
  const record = records[2]!;
  const batch = new Batch(record.firstIndex, record.batch!);
  const parts: Parts = {
    entries: [0, 1, 2].map((i) => batch.entry(i)),
    digests: Buffer.from(batch.digests),
    heads: headsOf(batch),
  };
  change(parts);
  return { ...record, batch: packBatch(parts.entries, parts.digests, parts.heads) };
}

const respelled = (i: number, change: (text: string) => string) =>
  repacked((parts) => {
    parts.entries[i] = Buffer.from(change(parts.entries[i]!.toString("utf8")));
  });

const otherHead = (i: number, change: (head: BatchHeads["heads"][number]) => object) =>
  repacked((parts) => {
    const heads = parts.heads!.heads.map((head, n) => (n === i ? { ...head, ...change(head) } : head));
    parts.heads = { ...parts.heads!, heads };
  });

/** The head of a size with another time, signed by the operator. */
const signedAt = async (i: number, change: (micros: number) => number) => {
  const { timestamp, root } = new Batch(3, records[2]!.batch!).head(i)!;
  const time = change(timestamp);
  const message = treeHeadMessage(Buffer.from(root).toString("hex"), 4 + i, formatTimestamp(time));
  const [signature] = await testOperator.sign([message]);
  return otherHead(i, () => ({ timestamp: time, signature: signature! }));
};

const FORGERIES: readonly [string, () => JournalRecord | Promise<JournalRecord>, RegExp][] = [
  ["an entry whose content was changed", () => respelled(1, (text) => text.replace('"n":4', '"n":5')), /does not hash/],
  ["an entry that is spelled otherwise", () => respelled(1, (text) => text.replace(",", ", ")), /not in the form/],
  [
    "an entry with a member of its own",
    () => respelled(0, (text) => text.replace("{", '{"ots_proof":"AA==",')),
    /not in the form/,
  ],
  [
    "an entry that is left out",
    () =>
      repacked((parts) => {
        parts.entries.splice(1, 1);
        parts.digests = Buffer.concat([parts.digests.subarray(0, 32), parts.digests.subarray(64)]);
        parts.heads = { ...parts.heads!, heads: parts.heads!.heads.slice(1) };
      }),
    /an entry is missing/,
  ],
  ["no entries", () => ({ ...records[2]!, batch: packBatch([], Buffer.alloc(0), null) }), /its batch is empty/],
  [
    "digests that are not those of its entries",
    () => repacked((parts) => parts.digests.fill(7, 32, 64)),
    /not in the form/,
  ],
  [
    "entries without heads",
    () =>
      repacked((parts) => {
        parts.heads = null;
      }),
    /no tree heads/,
  ],
  [
    "a head of another root",
    () => otherHead(0, () => ({ root: Buffer.alloc(32, 9) })),
    /root is not that of the first 4/,
  ],
  [
    "a head of another root behind one that is right",
    () => otherHead(1, () => ({ root: Buffer.alloc(32, 9) })),
    /root is not that of the first 5/,
  ],
  [
    "a head that is earlier than its entry, behind one of the same time",
    () =>
      repacked((parts) => {
        const early = microsOf((JSON.parse(parts.entries[0]!.toString("utf8")) as Entry).timestamp);
        const heads = parts.heads!.heads.map((head) => ({ ...head, timestamp: early }));
        parts.heads = { ...parts.heads!, heads };
      }),
    /earlier than the head before it, or than its entry/,
  ],
  ["a signature that does not verify", () => otherHead(2, () => ({ signature: Buffer.alloc(64, 9) })), /signature/],
  [
    "heads of another key",
    () =>
      repacked((parts) => {
        parts.heads = { ...parts.heads!, keyId: Buffer.alloc(32, 9) };
      }),
    /signed by sha256:0909/,
  ],
  [
    "a head that is earlier than the one before",
    () => signedAt(2, (micros) => micros - 1),
    /earlier than the head before it/,
  ],
  ["heads that are earlier than those on disk", () => signedAt(0, (micros) => micros - 86_400_000_000), /before it/],
  ["bytes that are no batch", () => ({ ...records[2]!, batch: Buffer.from("a batch of nothing") }), /format/],
  ["another place in the log", () => ({ ...records[2]!, firstIndex: 2 }), /follows 2 entries, and the log has 3/],
  ["another number", () => ({ ...records[2]!, sequence: 4 }), /record 4 instead of 3/],
  ["another record before it", () => ({ ...records[2]!, previous: Buffer.alloc(32, 9) }), /does not follow the record/],
];

describe("a record of a journal is refused for", () => {
  test.each(FORGERIES)("%s", async (_, forge, sentence) => {
    const journal = new FakeJournal();
    journal.records.push(...records.slice(0, 2).map(encodeRecord), encodeRecord(await forge()));
    const path = temporaryFolder();
    await expect(openTestLog({ journal, path })).rejects.toMatchObject({
      code: expect.stringMatching(/^(?:corrupt-log|wrong-operator)$/),
      message: expect.stringMatching(sentence),
    });
    const store = openStore({ path, mapSize: 2 ** 30 });
    expect(store.position().sequence).toBe(2);
    expect(store.lastBatch()).toMatchObject({ firstIndex: 0, count: 3 });
    await store.close();
    // With the true record in its place, the log continues.
    journal.records[2] = encodeRecord(records[2]!);
    const { log } = await openTestLog({ journal, path });
    expect(log.size).toBe(6);
    expect(await log.verify()).toMatchObject({ valid: true, entry_count: 6 });
  });
});

test("a journal of another operator's log is refused", async () => {
  const journal = new FakeJournal();
  journal.records.push(...records.map(encodeRecord));
  const signer = operatorKey(generatePrivateKey("ed25519"));
  await expect(openTestLog({ journal, signer })).rejects.toMatchObject({ code: "wrong-operator" });
});

test("rows of a record are applied as they are, deletions included", async () => {
  const journal = new FakeJournal();
  journal.records.push(...records.map(encodeRecord));
  const push = (rows: JournalRecord["rows"]) => {
    const sequence = journal.records.length + 1;
    const previous = recordHash(journal.records.at(-1)!);
    journal.records.push(encodeRecord({ sequence, previous, epoch: 0, firstIndex: 6, batch: null, rows }));
  };
  push([
    { table: "userNames", key: "a", row: { user_id: "1" } },
    { table: "userNames", key: "b", row: { user_id: "2" } },
  ]);
  push([{ table: "userNames", key: "a", row: undefined }]);
  const { log } = await openTestLog({ journal });
  expect(log.rows("userNames", "a", "z")).toEqual([{ key: "b", row: { user_id: "2" } }]);
  expect((await log.append({ event_type: "note", payload: {} })).leaf_index).toBe(6);
});

/** The records, with one of rows alone in front of the last batch. */
function withRows(rows: JournalRecord["rows"]): Buffer[] {
  const between = { ...records[2]!, batch: null, rows };
  const previous = recordHash(encodeRecord(between));
  return [...records.slice(0, 2), between, { ...records[2]!, sequence: 4, previous }].map(encodeRecord);
}

test("a batch whose heads are earlier than one that was signed beside the entries is refused", async () => {
  const { timestamp } = new Batch(3, records[2]!.batch!).head(0)!;
  const signedAt = (micros: number) =>
    withRows([{ table: "signedHeads", key: "log", row: { timestamp: formatTimestamp(micros) } }]);
  const journal = new FakeJournal();
  journal.records.push(...signedAt(timestamp + 1));
  await expect(openTestLog({ journal })).rejects.toThrow(/earlier than the head before it/);
  journal.records.splice(0, 4, ...signedAt(timestamp));
  expect((await openTestLog({ journal })).log.size).toBe(6);
});

test("nothing of a record that is refused is written with those before it", async () => {
  const journal = new FakeJournal();
  journal.records.push(...records.map(encodeRecord));
  const path = temporaryFolder();
  const apply: Projection["apply"] = ({ leafIndex }, state) => {
    if (leafIndex === 4) throw new CairnlogError("corrupt-log", "This entry has no rows.");
    state.put("requestNonces", ["entry", `${leafIndex}`], { request_id: "" });
  };
  const opening = openTestLog({ journal, path, projection: { ...noProjection, apply } });
  await expect(opening).rejects.toThrow(/Record 3 .*no rows/);
  const store = openStore({ path, mapSize: 2 ** 30 });
  expect([...store.keys("requestNonces")].map(([, leafIndex]) => leafIndex)).toEqual(["0", "1", "2"]);
  await store.close();
});

test("private rows that a record replaces are gone, wherever in the tail it comes", async () => {
  const replacing = new (class extends FakeJournal {
    override async *tail(position: JournalPosition): AsyncIterable<Decided> {
      for await (const decided of super.tail(position))
        yield decided.record.sequence === 4 ? { ...decided, replacesPrivateRows: true } : decided;
    }
  })();
  const named = (key: string) => ({ table: "userNames", key, row: { user_id: key } }) as const;
  const genesis = { ...records[0]!, rows: [...records[0]!.rows, named("a"), named("b")] };
  for (const record of [
    genesis,
    records[1]!,
    records[2]!,
    { ...records[2]!, batch: null, firstIndex: 6, rows: [named("b")] },
  ]) {
    const previous = replacing.records.length ? recordHash(replacing.records.at(-1)!) : NO_HASH;
    replacing.records.push(encodeRecord({ ...record, sequence: replacing.records.length + 1, previous }));
  }
  const { log } = await openTestLog({ journal: replacing });
  expect(log.rows("userNames", "", "~").map(({ key }) => key)).toEqual(["b"]);
});

test("a node that has missed a rotation refuses the retired key, and goes on with the next one", async () => {
  const journal = new FakeJournal();
  journal.records.push(...records.map(encodeRecord));
  const [path, ahead] = [temporaryFolder(), temporaryFolder()];
  for (const folder of [path, ahead]) await (await openTestLog({ journal, path: folder })).log.close();
  const next = operatorKey(generatePrivateKey("ed25519"));
  await leaveRecords(ahead, async () => {});
  await rotateOperatorKey({ path: ahead, from: testOperator, to: next, projection: noProjection });

  const store = openStore({ path: ahead, mapSize: 2 ** 30 });
  const last = store.lastBatch()!;
  const { firstIndex } = last;
  const batch = packBatch([last.entry(0)], last.digests, headsOf(last));
  const row = store.get("meta", "log")!;
  await store.close();
  const previous = recordHash(journal.records.at(-1)!);
  const rows = [{ table: "meta", key: "log", row }] as const;
  journal.records.push(encodeRecord({ sequence: 4, previous, epoch: 0, firstIndex, batch, rows }));

  await expect(openTestLog({ journal, path })).rejects.toMatchObject({ code: "wrong-operator" });
  const { log } = await openTestLog({ journal, path, signer: next });
  expect([log.size, log.operators.current.fingerprint]).toEqual([7, next.fingerprint]);
  await log.append({ event_type: "note", payload: {} });
  expect(await log.verify()).toMatchObject({ valid: true, entry_count: 8 });
});
