/**
 * A full disk: appends are refused before anything is written, and reads continue. Appends continue when there is
 * space.
 */
import { expect, onTestFinished, test, vi } from "vitest";
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

test("only room that was found is relied on, for 50 ms: no room, and a disk that cannot be read, are looked for again", () => {
  let now = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  const UNREADABLE = -1;
  // When it is asked, what the disk has then, and whether that was looked at.
  const asked: readonly (readonly [at: number, free: number, isLookedAt: boolean])[] = [
    [0, 99, true],
    [1, 99, true],
    [2, UNREADABLE, true],
    [3, UNREADABLE, true],
    [4, 100, true],
    [53, 99, false],
    [54, 99, true],
    [55, 99, true],
    [56, 100, true],
  ];
  let looks = 0;
  let free = 0;
  const room = new Room("/", 100, () => {
    looks++;
    if (free === UNREADABLE) throw new CairnlogError("storage-failed", "injected");
    return { bytes: 1_000, free };
  });
  for (const [at, has, isLookedAt] of asked) {
    [now, free, looks] = [at, has, 0];
    const check = () => room.check();
    if (isLookedAt && has < 100) expect(check, `${at} ms`).toThrow(CairnlogError);
    else expect(check, `${at} ms`).not.toThrow();
    expect(looks, `${at} ms`).toBe(Number(isLookedAt));
  }
});
