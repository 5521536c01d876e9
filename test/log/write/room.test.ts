/**
 * A full disk: appends are refused before anything is written, and reads continue. Appends continue when there is
 * space.
 */
import { expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { Room } from "#cairnlog/engine/store/lmdb/health.js";
import { openFaultyLog, openTestLog, temporaryFolder } from "../harness.js";

const note = (n: number) => ({ event_type: "note", payload: { n } });

test("appends are refused while the disk has no room, and go on by themselves", async () => {
  const { log, faults } = await openFaultyLog();
  await log.append(note(0));
  faults.hasRoom = false;
  const refused = await Promise.allSettled([log.append(note(1)), log.append([note(2), note(3)]), log.tryWriting()]);
  for (const outcome of refused)
    expect(outcome).toMatchObject({ status: "rejected", reason: { code: "storage-full", retryAfter: 10 } });
  expect(log.lastFailure).toMatchObject({ code: "storage-full" });
  expect(log.failure).toBeNull();
  expect([log.size, log.head(), log.treeHead()?.tree_size]).toEqual([1, log.entry(1), 1]);
  expect(await log.verify()).toMatchObject({ valid: true, entry_count: 1 });
  faults.hasRoom = true;
  expect(await log.append(note(4))).toMatchObject({ log_entry_id: 2, leaf_index: 1 });
  expect(log.lastFailure).toBeNull();
});

test("room that goes while a batch is signed refuses that batch, and nothing of it is written", async () => {
  const { log, faults } = await openFaultyLog();
  await log.append(note(0));
  faults.plan = ["no room"];
  await expect(log.append(note(1))).rejects.toMatchObject({ code: "storage-full" });
  expect(log.size).toBe(1);
  expect(await log.append(note(2))).toMatchObject({ leaf_index: 1 });
  expect(log.stateDifferences()).toEqual([]);
});

test("a log that must keep more bytes free than there are takes no append", async () => {
  await expect(openTestLog({ minFreeBytes: Number.MAX_SAFE_INTEGER })).rejects.toMatchObject({ code: "storage-full" });
});

test("the disk is looked at for the bytes that must stay free", () => {
  const path = temporaryFolder();
  expect(() => new Room(path, 0).check()).not.toThrow();
  expect(() => new Room(path, Number.MAX_SAFE_INTEGER).check()).toThrow(CairnlogError);
  expect(() => new Room(`${path}/none`, 0).check()).toThrow(/cannot be looked at/);
});
