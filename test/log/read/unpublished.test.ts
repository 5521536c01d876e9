/** What is not on disk, or was not told yet, is shown by nothing that a log says; nor is what a failed log cannot know. */
import { describe, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { openLogFollower } from "#cairnlog/engine/log/log.js";
import type { LogView } from "#cairnlog/engine/log/view/view.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { MAP_SIZE, openFaultyLog, openTestLog, openTestReader, testOperator } from "../harness.js";

const VERSIONS = [1, 2] as const;
const events = (count: number) => Array.from({ length: count }, () => ({ event_type: "note", payload: {} }));
const refused = expect.objectContaining({ code: "invalid-input" });

/** Asserts that a log shows its first `size` entries, of whatever more there is. */
function expectShown(log: LogView, size: number): void {
  expect(log.size).toBe(size);
  for (const treeVersion of VERSIONS) {
    for (const leafIndex of [0, size]) {
      expect(() => log.inclusionProof(leafIndex, { treeSize: size + 1, treeVersion })).toThrow(refused);
      expect(() => log.inclusionProofJson(leafIndex, { treeSize: size + 1, treeVersion })).toThrow(refused);
    }
    for (const from of [1, size, size + 1])
      expect(() => log.consistencyProof(from, size + 1, treeVersion)).toThrow(refused);
    expect(log.inclusionProof(size - 1, { treeVersion })).toMatchObject({ tree_size: size });
    expect(log.tile(treeVersion, 0, 0, size)).toHaveLength(32 * size);
    expect(log.tile(treeVersion, 0, 0, size + 1)).toBeUndefined();
  }
  expect(log.treeHead(size)).toMatchObject({ tree_size: size });
  expect(log.treeHead(size + 1)).toBeNull();
  expect(log.receipt(size - 1)).toMatchObject({ leaf_index: size - 1, sth: log.treeHead(size) });
  for (const leafIndex of [size, -1]) {
    expect(log.receipt(leafIndex)).toBeNull();
    expect(log.entryAt(leafIndex)).toBeUndefined();
    expect(log.entryJsonAt(leafIndex)).toBeUndefined();
  }
  expect(log.entry(size + 1)).toBeUndefined();
  expect(log.entryJson(size + 1)).toBeUndefined();
  expect(log.entryJson(size)).toEqual(log.entryJsonAt(size - 1));
  expect(log.leafIndexOf(size + 1)).toBeUndefined();
  expect([log.leafIndexAfter(size - 1), log.leafIndexAfter(size), log.leafIndexAfter(size + 1)]).toEqual([
    size - 1,
    size,
    size,
  ]);
  expect(log.head()).toMatchObject({ id: size });
  expect([...log.entries()].map(({ id }) => id)).toEqual(Array.from({ length: size }, (_, i) => i + 1));
  expect([...log.entries(size - 1)].map(({ id }) => id)).toEqual([size]);
  expect(log.postings(hashedTerm(POSTING.eventType, "note")).length).toBe(size);
  expect(log.match({}, size - 1, 9)).toEqual({ total: size, indexes: [size - 1] });
  expect(log.find({ eventTypes: ["note"] }, 0, 9).total).toBe(size);
  expect(log.between(0, Number.POSITIVE_INFINITY)).toEqual([{ from: 0, to: size }]);
}

test("a batch that waits for the disk", async () => {
  const { log, faults } = await openFaultyLog();
  await log.append(events(3));
  const { begun } = faults;
  let release = () => {};
  faults.hold = new Promise((resolve) => {
    release = resolve;
  });
  const appending = log.append(events(2));
  try {
    await expect.poll(() => faults.begun, { interval: 1 }).toBe(begun + 1);
    expectShown(log, 3);
  } finally {
    release();
  }
  await appending;
  expectShown(log, 5);
});

test("what another one has written since a reader looked", async () => {
  const { log, path } = await openTestLog();
  await log.append(events(3));
  const reader = await openTestReader(path);
  await log.append(events(1));
  expectShown(reader, 3);
  reader.refresh();
  expectShown(reader, 4);
});

test("what the writer has not told a follower yet, though it is on the disk", async () => {
  const { log, path } = await openTestLog();
  await log.append(events(3));
  const follower = openLogFollower({
    path,
    operatorKey: testOperator.public.pem,
    mapSize: MAP_SIZE,
    writer: {} as never,
  });
  try {
    await log.append(events(1));
    expectShown(follower, 3);
    follower.follow({ kind: "restored" });
    expectShown(follower, 4);
  } finally {
    await follower.close();
  }
});

describe("after a write that leaves the environment in an unknown state", () => {
  const reads: readonly [string, (log: LogWriter) => unknown][] = [
    ["an entry", (log) => log.entry(99)],
    ["an entry's bytes", (log) => log.entryJson(99)],
    ["a leaf", (log) => log.entryAt(99)],
    ["a leaf's bytes", (log) => log.entryJsonAt(99)],
    ["a leaf's place", (log) => log.leafIndexOf(99)],
    ["a head", (log) => log.treeHead(99)],
    ["a receipt", (log) => log.receipt(99)],
    ["a row", (log) => log.row("keys", "none")],
  ];
  test("everybody is told once, and nothing is said to be missing", async () => {
    const { log, faults } = await openFaultyLog();
    await log.append(events(3));
    const told: CairnlogError[] = [];
    log.observeFailure((failure) => told.push(failure));
    expect(log.failure).toBeNull();
    const failure = new CairnlogError("storage-failed", "A write to the log failed.");
    faults.store.health.end(failure);
    expect(log.failure).toBe(failure);
    expect(told).toEqual([failure]);
    for (const [what, read] of reads) expect(() => read(log), what).toThrow(failure);
    await expect(log.append(events(1))).rejects.toBe(failure);
  });
});
