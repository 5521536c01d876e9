/**
 * One suite for all journals and all ways in which a commit can fail. No acknowledged change is lost, no other change
 * is written in part, records are numbered without gaps and chained, the log continues, and memory equals the disk.
 */
import { describe, expect, test } from "vitest";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { type Faults, openFaultyLog, openTestLog } from "../log/harness.js";
import { FakeJournal, type JournalFate } from "./fakejournal.js";
import { checkContent, endOf, Load, namesOf, positionOf } from "./load.js";

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

async function checkWhole(
  log: LogWriter,
  path: string,
  load: Load,
  isKept: boolean,
  journal?: FakeJournal,
): Promise<void> {
  await checkContent(log, load, isKept);
  if (journal) expect(await positionOf(path)).toEqual(endOf(journal.records));
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
  expect([...second.entries()].map(({ payload }) => payload!.n)).toEqual([1, 3]);
  await expect(first.append(note(4))).rejects.toMatchObject({ code: "storage-failed" });
  expect(await first.append(note(5))).toMatchObject({ leaf_index: 2 });
  expect([...first.entries()].map(({ payload }) => payload!.n)).toEqual([1, 3, 5]);
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
  expect([...again.entries()].map(({ payload }) => payload!.n)).toEqual([1, 2]);
  expect(await again.verify()).toMatchObject({ valid: true, entry_count: 2 });
});

test("a record that a journal has decided is not said to be unwritten when the disk has no room for it", async () => {
  const journal = new FakeJournal();
  const { log, faults } = await openFaultyLog({ journal });
  faults.plan = ["no room"];
  await expect(log.append({ event_type: "note", payload: { n: 1 } })).rejects.toMatchObject({ code: "storage-failed" });
  expect(await log.append({ event_type: "note", payload: { n: 2 } })).toMatchObject({ leaf_index: 1 });
  expect([...log.entries()].map(({ payload }) => payload!.n)).toEqual([1, 2]);
});
