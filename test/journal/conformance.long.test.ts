/**
 * One suite for all journals and all ways in which a commit can fail. No acknowledged change is lost, no other change
 * is written in part, records are numbered without gaps and chained, the log continues, and memory equals the disk.
 */
import { describe, expect, test } from "vitest";
import { checkNext, decodeRecord, recordHash } from "#cairnlog/engine/journal/record.js";
import type { Log } from "#cairnlog/engine/log/log.js";
import type { Committed } from "#cairnlog/engine/log/write/executor.js";
import { type JournalPosition, ORIGIN } from "#cairnlog/engine/store/position.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { type Faults, openFaultyLog, openTestLog } from "../log/harness.js";
import { runIn } from "../log/inline.js";
import { FakeJournal, type JournalFate } from "./fakejournal.js";

/** A failure, and whether the failed commit may be on disk. */
interface Failure {
  readonly name: string;
  readonly journal: boolean;
  plan(faults: Faults, journal: FakeJournal | undefined, before: number): void;
  readonly isKept: boolean;
}

const works = (count: number) => Array<"works">(count).fill("works");

const onDisk = (journal: boolean): Failure[] =>
  (["not persisted", "persisted anyway"] as const).map((fate) => ({
    name: `${journal ? "decided elsewhere, " : ""}the transaction fails, ${fate}`,
    journal,
    plan: (faults, _, before) => {
      faults.plan = [...works(before), fate];
    },
    isKept: journal || fate === "persisted anyway",
  }));

const inJournal: Failure[] = (
  [
    ["refuses", false],
    ["loses the answer and keeps the record", true],
    ["loses the answer and keeps the record late", true],
    ["loses both", false],
  ] satisfies [JournalFate, boolean][]
).map(([fate, isKept]) => ({
  name: `the journal ${fate}`,
  journal: true,
  plan: (_, journal, before) => {
    journal!.plan = [...works(before), fate];
  },
  isKept,
}));

const FAILURES = [...onDisk(false), ...onDisk(true), ...inJournal];

/** The commands of a run. Every third command writes only a row, the others an entry and a row. */
class Load {
  readonly acknowledged = new Map<number, Committed<unknown>>();
  readonly failed = new Set<number>();
  readonly #log: Log;
  #next: number;

  constructor(log: Log, from = 0) {
    this.#log = log;
    this.#next = from;
  }

  /** Runs waves of enough commands that batches are in every stage at once. */
  async run(waves: number, width: number): Promise<void> {
    const runs: Promise<void>[] = [];
    for (let wave = 0; wave < waves; wave++) {
      for (let i = 0; i < width; i++) runs.push(this.#command(this.#next++));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(runs);
  }

  async #command(n: number): Promise<void> {
    try {
      const committed = await runIn(this.#log, (transaction) => {
        transaction.put("userNames", `n${n}`, { user_id: `u${n}` });
        if (n % 3) transaction.append({ event_type: "note", payload: { n, tags: ["load"] } });
      });
      this.acknowledged.set(n, committed);
    } catch (error) {
      expect(error).toMatchObject({ name: "CairnlogError", code: "storage-failed" });
      this.failed.add(n);
    }
  }
}

const namesOf = (log: Log) => new Set(log.rows("userNames", "n", "o").map(({ key }) => Number(key.slice(1))));

async function positionOf(path: string): Promise<JournalPosition> {
  const store = openStore({ path, mapSize: 2 ** 30 });
  const position = store.position();
  await store.close();
  return position;
}

async function checkWhole(log: Log, path: string, load: Load, isKept: boolean, journal?: FakeJournal): Promise<void> {
  expect(await log.verify()).toMatchObject({ valid: true, entry_count: log.size, errors: [] });
  expect(log.stateDifferences()).toEqual([]);
  const entries = new Set([...log.entries()].map(({ payload }) => payload.n as number));
  const names = namesOf(log);
  for (const n of names) expect(n % 3 === 0 || entries.has(n), `${n}: a row without its entry`).toBe(true);
  for (const n of entries) expect(names.has(n), `${n}: an entry without its row`).toBe(true);
  for (const [n, { receipts }] of load.acknowledged) {
    expect(names.has(n)).toBe(true);
    for (const { log_entry_id, entry_hash, sth } of receipts) {
      expect(log.entry(log_entry_id)?.entry_hash).toBe(entry_hash);
      expect(log.treeHead(sth.tree_size)).toEqual(sth);
    }
  }
  if (!isKept) for (const n of load.failed) expect(names.has(n), `${n} failed and is there`).toBe(false);
  if (!journal) return;
  let position: JournalPosition = ORIGIN;
  for (const bytes of journal.records) {
    const record = decodeRecord(bytes);
    checkNext(position, record);
    position = { sequence: record.sequence, epoch: record.epoch, hash: Buffer.from(recordHash(bytes)) };
  }
  expect(await positionOf(path)).toEqual(position);
}

describe.each(FAILURES)("$name", ({ journal: isElsewhere, plan, isKept }) => {
  test.each([0, 1, 2])("after %i commits", async (before) => {
    const journal = isElsewhere ? new FakeJournal() : undefined;
    const options = journal ? { journal } : {};
    const { log, path, faults } = await openFaultyLog(options);
    const first = new Load(log);
    await first.run(1, 3);
    expect(first.failed.size).toBe(0);

    plan(faults, journal, before);
    const load = new Load(log, 3);
    await load.run(4, 150);
    expect(load.failed.size).toBeGreaterThan(0);
    // A late record takes the place of the next one, which is refused.
    const last = new Load(log, 1000);
    for (let tries = 0; tries < 3 && !last.acknowledged.size; tries++) await last.run(1, 4);
    expect(last.acknowledged.size).toBeGreaterThan(0);
    for (const [n, committed] of [...first.acknowledged, ...last.acknowledged]) load.acknowledged.set(n, committed);
    for (const n of last.failed) load.failed.add(n);
    await checkWhole(log, path, load, isKept, journal);

    const { size } = log;
    await log.close();
    const { log: again } = await openTestLog({ ...options, path });
    expect(again.size).toBe(size);
    await checkWhole(again, path, load, isKept, journal);
    if (!journal) return;

    const { log: copy, path: copyPath } = await openTestLog(options);
    expect(copy.size).toBe(size);
    await checkWhole(copy, copyPath, load, isKept, journal);
    for (let index = 0; index < size; index++) {
      expect(copy.entryJsonAt(index)).toEqual(again.entryJsonAt(index));
      expect(copy.treeHead(index + 1)).toEqual(again.treeHead(index + 1));
    }
    expect(namesOf(copy)).toEqual(namesOf(again));
    expect(copy.row("meta", "log")).toEqual(again.row("meta", "log"));
  });
});

test("a writer that is behind applies the records of another one, and continues from there", async () => {
  const journal = new FakeJournal();
  const { log: first } = await openTestLog({ journal });
  const { log: second } = await openTestLog({ journal });
  const note = (n: number) => ({ event_type: "note", payload: { n } });
  await first.append(note(1));
  await expect(second.append(note(2))).rejects.toMatchObject({ code: "storage-failed" });
  expect(await second.append(note(3))).toMatchObject({ leaf_index: 1 });
  expect([...second.entries()].map(({ payload }) => payload.n)).toEqual([1, 3]);
  await expect(first.append(note(4))).rejects.toMatchObject({ code: "storage-failed" });
  expect(await first.append(note(5))).toMatchObject({ leaf_index: 2 });
  expect([...first.entries()].map(({ payload }) => payload.n)).toEqual([1, 3, 5]);
  for (const log of [first, second]) expect(await log.verify()).toMatchObject({ valid: true });
});

test("a node that crashed between the decision and the transaction has the record after its next start", async () => {
  const journal = new FakeJournal();
  const { log, path, faults } = await openFaultyLog({ journal });
  await log.append({ event_type: "note", payload: { n: 1 } });
  // The disk fails permanently, so the process has to end.
  faults.plan = ["not persisted", "not persisted"];
  await expect(log.append({ event_type: "note", payload: { n: 2 } })).rejects.toMatchObject({ code: "storage-failed" });
  expect(log.size).toBe(1);
  await log.close();
  const { log: again } = await openTestLog({ journal, path });
  expect([...again.entries()].map(({ payload }) => payload.n)).toEqual([1, 2]);
  expect(await again.verify()).toMatchObject({ valid: true, entry_count: 2 });
});

test("a record that a journal has decided is not said to be unwritten when the disk has no room for it", async () => {
  const journal = new FakeJournal();
  const { log, faults } = await openFaultyLog({ journal });
  faults.plan = ["no room"];
  await expect(log.append({ event_type: "note", payload: { n: 1 } })).rejects.toMatchObject({ code: "storage-failed" });
  expect(await log.append({ event_type: "note", payload: { n: 2 } })).toMatchObject({ leaf_index: 1 });
  expect([...log.entries()].map(({ payload }) => payload.n)).toEqual([1, 2]);
});
