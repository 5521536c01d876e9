/** Entries whose payload the operator withholds: what a view shows of them, and that chain, trees and proofs stay what they were. */
import { expect, onTestFinished, test } from "vitest";
import type { FeedMessage } from "#cairnlog/engine/log/follow/feed.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import { indexesOf } from "#cairnlog/engine/log/read/bits.js";
import type { Criteria } from "#cairnlog/engine/log/read/query.js";
import { EntryReader } from "#cairnlog/engine/log/read/reader.js";
import { Withheld } from "#cairnlog/engine/log/read/withheld.js";
import type { LogView } from "#cairnlog/engine/log/view/view.js";
import { inMemory, joined, without } from "#cairnlog/engine/store/postings/lists.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { eventOf } from "#cairnlog/engine/verify/events/kinds.js";
import { isPayloadOf, isWithheld, payloadHash, withholdingFault } from "#cairnlog/engine/verify/events/withheld.js";
import { MAP_SIZE, openTestLog, openTestReader, testOperator } from "../harness.js";

const SECRET = "correct horse battery";
const TYPE = "https://example.org/statement/v1";
const PAYLOAD = { document_title: SECRET, tags: ["horse"], document_hash: "ab".repeat(32) };

/** All that shows an entry, whoever asks how often: what was asked for again is kept. */
function* shown(view: LogView, id: number): Iterable<string> {
  const leaf = view.leafIndexOf(id)!;
  const found = (criteria: Criteria) => Buffer.concat(view.find(criteria, 0, 10).entries);
  for (let times = 0; times < 3; times++)
    for (const each of [
      view.entryJson(id),
      view.entryJsonAt(leaf),
      view.bareJsonAt(leaf),
      JSON.stringify(view.entry(id)),
      JSON.stringify(view.entryAt(leaf)),
      JSON.stringify(view.entryOfRow(id)),
      JSON.stringify([...view.entries(leaf)]),
      JSON.stringify(view.receipt(leaf)),
      found({}),
      found({ eventTypes: [TYPE] }),
      found({ title: "correct" }),
      found({ tags: ["horse"] }),
      found({ search: "abab" }),
    ])
      yield String(each);
}

test("is not shown by anything that had shown it before, to nobody who has asked for it", async () => {
  const { log, path } = await openTestLog();
  const { log_entry_id: entry_id, entry_hash } = await log.append({ event_type: TYPE, payload: PAYLOAD });
  const reader = await openTestReader(path);
  const sent: FeedMessage[] = [];
  log.feed((message) => sent.push(message));
  const writer = { enqueue: log.enqueue.bind(log), signHead: () => log.signHead(), verify: () => log.verify() };
  const follower = openLogFollower({ path, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE, writer });
  onTestFinished(() => follower.close());
  const views = { log, reader, follower };
  for (const [name, view] of Object.entries(views))
    for (const text of shown(view, entry_id)) expect(text, name).toContain(SECRET);
  const event = { entry_id, entry_hash, payload_hash: payloadHash(PAYLOAD), reason: "an order", basis: null };
  await log.append(eventOf("payload_withheld", event));
  reader.refresh();
  for (const message of sent.splice(0)) follower.follow(message);
  for (const [name, view] of Object.entries(views))
    for (const text of shown(view, entry_id)) expect(text, name).not.toContain(SECRET);
});

async function withheldLog() {
  const made = await openTestLog();
  const { log } = made;
  await log.append({ event_type: TYPE, payload: { document_title: "first" } });
  const { log_entry_id: id, entry_hash } = await log.append({ event_type: TYPE, payload: PAYLOAD });
  await log.append({ event_type: TYPE, payload: { document_title: "third" } });
  const before = { proof: log.inclusionProof(1, { treeSize: 3 }), head: log.treeHead(3), json: log.entryJson(id)! };
  const event = { entry_id: id, entry_hash, payload_hash: payloadHash(PAYLOAD), reason: "an order", basis: null };
  const { log_entry_id: by } = await log.append(eventOf("payload_withheld", event));
  return { ...made, id, by, before };
}

test("is shown without its payload by the writer, by readers, and after the log was opened again", async () => {
  const { log, path, id, by, before } = await withheldLog();
  const reader = await openTestReader(path);
  const check = (view: Pick<typeof log, "entry" | "entryJson" | "find">) => {
    const entry = view.entry(id)!;
    expect(entry).toEqual({ ...JSON.parse(before.json.toString()), payload: null, withheld_by: by });
    expect(isWithheld(entry)).toBe(true);
    expect(withholdingFault(entry, view.entry(by))).toBeUndefined();
    expect(withholdingFault(entry, undefined)).toContain("does not withhold it");
    expect(isPayloadOf(entry, PAYLOAD)).toBe(true);
    expect(isPayloadOf(entry, { ...PAYLOAD, tags: [] })).toBe(false);
    expect(view.entryJson(id)!.includes(SECRET)).toBe(false);
    const all = view.find({}, 0, 10);
    expect(all.total).toBe(4);
    expect(Buffer.concat(all.entries).includes(SECRET)).toBe(false);
    for (const criteria of [
      { title: "correct" },
      { tags: ["horse"] },
      { document: PAYLOAD.document_hash },
      { search: "abab" },
    ])
      expect(view.find(criteria, 0, 10)).toEqual({ entries: [], total: 0 });
    expect(view.find({ eventTypes: [TYPE] }, 0, 10).total).toBe(3);
    expect(view.find({ search: entry.entry_hash }, 0, 10).total).toBe(1);
  };
  check(log);
  check(reader);
  expect(log.inclusionProof(1, { treeSize: 3 })).toEqual(before.proof);
  expect(log.treeHead(3)).toEqual(before.head);
  expect((await log.verify()).errors).toEqual([]);
  expect(log.stateDifferences()).toEqual([]);
  await log.close();
  check((await openTestLog({ path })).log);
});

test("of several entries that withhold one payload the first counts that names the entry by its hash", async () => {
  const { log, path } = await openTestLog();
  const { log_entry_id: entry_id, entry_hash } = await log.append({ event_type: TYPE, payload: PAYLOAD });
  const about = { entry_id, entry_hash, payload_hash: payloadHash(PAYLOAD), reason: "an order", basis: null };
  // The hash of another entry: a history from elsewhere may say anything.
  await log.append(eventOf("payload_withheld", { ...about, entry_hash: "ab".repeat(32) }));
  expect(log.entry(entry_id)!.payload).toEqual(PAYLOAD);
  const { log_entry_id: first } = await log.append(eventOf("payload_withheld", about));
  await log.append([eventOf("payload_withheld", about), eventOf("payload_withheld", about)]);
  expect(log.entry(entry_id)).toMatchObject({ payload: null, withheld_by: first });
  expect(await log.verify()).toMatchObject({ valid: true });
  await log.close();
  const { log: again } = await openTestLog({ path });
  expect(again.entry(entry_id)).toMatchObject({ payload: null, withheld_by: first });
});

test("lists leave out what is withheld, whatever is asked of them", () => {
  const indexes = Array.from({ length: 40 }, (_, i) => 3 * i);
  const list = joined([inMemory(indexes.slice(0, 15)), inMemory(indexes.slice(15))]);
  const gone = [0, 7, 9, 12, 60, 117];
  const left = indexes.filter((index) => !gone.includes(index));
  const shown = without(list, gone);
  expect(shown.length).toBe(left.length);
  expect(left.map((_, rank) => shown.at(rank))).toEqual(left);
  for (let from = 0; from < 121; from++) {
    expect(shown.seek(from)).toBe(left.filter((index) => index < from).length);
    expect(shown.window(from, 4)).toEqual(left.filter((index) => index >= from).slice(0, 4));
    expect(shown.between(from, from + 31)).toEqual(left.filter((index) => index >= from && index < from + 31));
    const bits = new Int32Array(1);
    shown.fill(bits, from, from + 31);
    expect(Array.from({ length: 31 }, (_, i) => from + i).filter((_, i) => (bits[0]! >>> i) & 1)).toEqual(
      shown.between(from, from + 31),
    );
  }
  const sought = Array.from({ length: 121 }, (_, i) => i);
  const marks = new Uint8Array(121);
  shown.mark(sought, marks);
  expect(sought.filter((i) => marks[i])).toEqual(left);
});

test("what is withheld costs the same however much was before, and what is read again reads no entry twice", async () => {
  const { log, path } = await openTestLog();
  const receipts = await log.append(
    Array.from({ length: 30 }, (_, n) => ({ event_type: TYPE, payload: { document_title: `${n}` } })),
  );
  const withhold = ({ log_entry_id: entry_id, entry_hash }: (typeof receipts)[number]) => {
    const event = { entry_id, entry_hash, payload_hash: "00".repeat(32), reason: "an order", basis: null };
    return log.append(eventOf("payload_withheld", event));
  };
  // In any order of the entries.
  for (const n of [17, 4, 21, 9]) await withhold(receipts[n]!);
  const store = openStore({ path, readOnly: true, isInspected: true });
  try {
    const entries = new EntryReader(store);
    const [read, rows]: [number[], number[]] = [[], []];
    const stored = {
      entry(leaf: number) {
        read.push(leaf);
        return entries.entry(leaf);
      },
    };
    const counted: Pick<typeof store, "get" | "range"> = {
      get(table, key) {
        rows.push(key as number);
        return store.get(table, key);
      },
      range: (...given) => store.range(...given),
    };
    const withheld = new Withheld(counted, stored, (id) => (id <= log.size ? id - 1 : undefined));
    withheld.restore();
    expect(withheld.leaves).toEqual([4, 9, 17, 21]);
    expect(read.splice(0).sort((a, b) => a - b)).toEqual([4, 9, 17, 21]);
    await withhold(receipts[11]!);
    store.refresh();
    withheld.take([12]);
    expect([withheld.leaves, read.splice(0), rows.splice(0)]).toEqual([[4, 9, 11, 17, 21], [11], [12]]);
    expect(withheld.row(11)?.withheld_by).toBe(35);
    withheld.take([12]);
    withheld.restore();
    expect([withheld.leaves, read]).toEqual([[4, 9, 11, 17, 21], []]);
    expect(log.withheldLeaves).toEqual(withheld.leaves);
    // Postings of every kind are without them, however they are read, except kinds that say nothing of a payload.
    const all = Array.from({ length: 40 }, (_, i) => i);
    const shown = withheld.postings({
      list: () => joined([inMemory(all)]),
      range: () => all,
      fillRange: (_, __, bits) => bits.fill(-1, 0, 1),
      rangeCount: () => all.length,
    });
    for (const kind of Object.values(POSTING)) {
      const term = String.fromCharCode(kind);
      const isKept = kind === POSTING.eventType || kind === POSTING.digest;
      const left = all.filter((index) => isKept || !withheld.leaves.includes(index));
      expect(shown.list(term).between(0, 40), term).toEqual(left);
      expect(shown.range(term, term), term).toEqual(left);
      // Bit 9 is set of something else.
      const bits = Int32Array.of(1 << 9, 0);
      shown.fillRange(term, term, bits);
      expect(indexesOf(bits), term).toEqual(all.filter((index) => index < 32 && (index === 9 || left.includes(index))));
    }
  } finally {
    await store.close();
  }
});
