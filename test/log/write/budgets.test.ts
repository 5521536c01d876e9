/** Budgets of stored bytes, as the log's writer counts them: windows, failures and takeovers. */
import { describe, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { appendEvents } from "#cairnlog/engine/log/state/commands.js";
import type { Receipt } from "#cairnlog/engine/log/state/executor.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { Room } from "#cairnlog/engine/store/lmdb/health.js";
import { FakeJournal } from "../../journal/fakejournal.js";
import { openFaultyLog, openTestLog, temporaryFolder, testOperator, testPool } from "../harness.js";

const DAY_S = 86_400;
const SECOND = 1_000_000;
const CLIENT = "192.0.2.1";
/** Bytes of the canonical payload. */
const SIZE = Buffer.byteLength(JSON.stringify({ text: "é".repeat(40) }));
const events = [{ event_type: "note", payload: { text: "é".repeat(40) } }];

const write = async (log: LogWriter, client = CLIENT, isReached = false): Promise<readonly Receipt[]> =>
  (await log.execute(appendEvents, { events }, { client, isReached })).receipts;
const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "written",
    (error) => error.code,
  );
const windows = (log: LogWriter) => log.rows("byteBudgets", -1, Number.MAX_SAFE_INTEGER).map(({ row }) => row.windows);
const used = (log: LogWriter) => windows(log).map((numbers) => numbers[2]);

describe("a budget", () => {
  test("takes the bytes of payloads, to the last one, and is whole again a day after its first use", async () => {
    let now = Date.parse("2026-01-01T00:00:00Z") * 1000;
    const budgets = { perAddress: 3 * SIZE, fromStrangers: null };
    const { log } = await openTestLog({ clock: () => now, budgets });
    for (let i = 0; i < 3; i++) await write(log);
    now += 3600 * SECOND;
    await expect(write(log)).rejects.toMatchObject({ code: "budget-spent", retryAfter: DAY_S - 3600 });
    expect(log.size).toBe(3);
    expect(used(log)).toEqual([3 * SIZE]);
    now += (DAY_S - 3600 - 1) * SECOND;
    await expect(write(log)).rejects.toMatchObject({ code: "budget-spent", retryAfter: 1 });
    now += SECOND;
    await write(log);
    expect(used(log)).toEqual([SIZE]);
  });

  test("is taken from by commands of one batch, and of batches in flight, as by one after the other", async () => {
    const { log } = await openTestLog({ budgets: { perAddress: 400 * SIZE, fromStrangers: null } });
    const outcomes: Promise<unknown>[] = [];
    for (let wave = 0; wave < 4; wave++) {
      for (let i = 0; i < 150; i++) outcomes.push(codeOf(write(log)));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const codes = await Promise.all(outcomes);
    expect(codes).toEqual([...Array(400).fill("written"), ...Array(200).fill("budget-spent")]);
    expect(used(log)).toEqual([400 * SIZE]);
  });

  test("has one row for an address, and one for strangers, however many commands a batch has", async () => {
    const { log } = await openTestLog({ budgets: { perAddress: 500 * SIZE, fromStrangers: 500 * SIZE } });
    await Promise.all(Array.from({ length: 50 }, () => write(log)));
    expect(used(log)).toEqual([50 * SIZE, 50 * SIZE]);
    await write(log, CLIENT, true);
    expect(used(log).sort()).toEqual([50 * SIZE, 51 * SIZE]);
  });

  test("of an address is as it was when that of all strangers refuses", async () => {
    const { log } = await openTestLog({ budgets: { perAddress: 3 * SIZE, fromStrangers: SIZE } });
    const codes: unknown[] = [];
    for (const isReached of [false, false, false, true, true, true])
      codes.push(await codeOf(write(log, CLIENT, isReached)));
    expect(codes).toEqual(["written", "budget-spent", "budget-spent", "written", "written", "budget-spent"]);
  });

  test("of a /64 is its own, whoever of its /48 came before; all of that have eight together", async () => {
    const { log } = await openTestLog({ budgets: { perAddress: 2 * SIZE, fromStrangers: null } });
    const codes: unknown[] = [];
    for (let network = 0; network < 9; network++)
      for (let i = 0; i < 3; i++) codes.push(await codeOf(write(log, `2001:db8:1:${network}::/64`)));
    const ofOne = ["written", "written", "budget-spent"];
    expect(codes).toEqual([...Array(8).fill(ofOne).flat(), ...Array(3).fill("budget-spent")]);
  });

  test("is not touched by commands that nobody pays", async () => {
    const { log } = await openTestLog({ budgets: { perAddress: 1, fromStrangers: 1 } });
    await log.append(events[0]!);
    expect(windows(log)).toEqual([]);
    expect(log.row("secrets", "addresses")).toBeUndefined();
  });

  test.each(["not persisted", "persisted anyway"] as const)(
    "is what the disk says after a commit that was %s",
    async (fate) => {
      const { log, path, faults } = await openFaultyLog({ budgets: { perAddress: 2 * SIZE, fromStrangers: null } });
      faults.plan = [fate];
      expect(await codeOf(write(log))).toBe("storage-failed");
      const left = fate === "not persisted" ? 2 : 1;
      for (let i = 0; i < left; i++) await write(log);
      expect(await codeOf(write(log))).toBe("budget-spent");
      expect(used(log)).toEqual([2 * SIZE]);
      await log.close();
      const { log: again } = await openTestLog({ path, budgets: { perAddress: 2 * SIZE, fromStrangers: null } });
      expect(await codeOf(write(again))).toBe("budget-spent");
      expect(await codeOf(write(again, "192.0.2.2"))).toBe("written");
    },
  );
});

test("a node that takes over goes on with the counts of the one before", async () => {
  const journal = new FakeJournal();
  await (await openLog({ path: temporaryFolder(), signer: testOperator, pool: testPool, journal })).close();
  const budgets = { perAddress: 3 * SIZE, fromStrangers: 5 * SIZE };
  const standing = { refusal: null as CairnlogError | null };
  const leader = (await openTestLog({ journal, standing, budgets })).log;
  await write(leader);
  await write(leader);
  const other = { refusal: new CairnlogError("not-leader", "Another node leads.") as CairnlogError | null };
  const follower = (await openTestLog({ journal, standing: other, budgets })).log;
  await follower.follow();
  expect(windows(follower)).toEqual(windows(leader));
  standing.refusal = other.refusal;
  other.refusal = null;
  await write(follower);
  expect(await codeOf(write(follower))).toBe("budget-spent");
  for (const client of ["192.0.2.2", "192.0.2.3"]) expect(await codeOf(write(follower, client))).toBe("written");
  expect(await codeOf(write(follower, "192.0.2.4"))).toBe("budget-spent");
});

test("what a batch took that failed is not there, and what a batch took that succeeded is on disk, whatever failed before", async () => {
  const limit = 3000 * SIZE;
  const { log, faults } = await openFaultyLog({ budgets: { perAddress: limit, fromStrangers: null } });
  const fates = ["works", "works", "not persisted", "works", "persisted anyway", "not persisted", "works"] as const;
  let spent = 0;
  for (let i = 0; i < 14; i++) {
    const fate = fates[i % fates.length]!;
    faults.plan = [fate];
    expect(await codeOf(write(log))).toBe(fate === "works" ? "written" : "storage-failed");
    if (fate !== "not persisted") spent += SIZE;
    const [reserved] = used(log);
    expect(reserved).toBeGreaterThanOrEqual(spent);
    // What was reserved when a batch failed counts as spent: once for each failure, at most.
    expect(reserved! - spent).toBeLessThanOrEqual((limit / 1024) * (1 + i / 2));
  }
});

test("rows are written ahead, so that most batches write none, and a restart gives nobody more", async () => {
  const limit = 3000 * SIZE;
  const budgets = { perAddress: limit, fromStrangers: null };
  const { log, path } = await openTestLog({ budgets });
  let rows = 0;
  log.observeRows("byteBudgets", (changes) => {
    rows += changes?.length ?? 0;
  });
  for (let i = 1; i <= 60; i++) {
    await write(log);
    const [reserved] = used(log);
    // Never less than was spent, and at most as much again, up to a thousandth of the budget.
    expect(reserved).toBeGreaterThanOrEqual(i * SIZE);
    expect(reserved! - i * SIZE).toBeLessThanOrEqual(Math.min(i * SIZE, limit / 1024));
  }
  expect(rows).toBeLessThan(35);
  const [before] = used(log);
  await log.close();
  const { log: again } = await openTestLog({ path, budgets });
  await write(again);
  expect(used(again)[0]).toBeGreaterThanOrEqual(before! + SIZE);
  const outcomes = await Promise.all(Array.from({ length: 3000 }, () => codeOf(write(again))));
  const written = 61 + outcomes.filter((code) => code === "written").length;
  expect(written).toBeLessThanOrEqual(3000);
  expect(written).toBeGreaterThanOrEqual(2996);
  expect(used(again)).toEqual([limit]);
});

describe("a disk that is nearly full", () => {
  test("takes what an anchor's keys and the operator write, and nothing of strangers", async () => {
    const { log, faults } = await openFaultyLog();
    faults.isTight = true;
    await expect(write(log)).rejects.toMatchObject({ code: "storage-full", retryAfter: 10 });
    expect(log.size).toBe(0);
    await write(log, CLIENT, true);
    await log.append(events[0]!);
    faults.isTight = false;
    await write(log);
    expect(log.size).toBe(3);
  });

  test("is one with less than a twentieth of its bytes above those that must stay free", () => {
    const room = (free: number, least = 100) => {
      const looked = new Room("/", least, () => ({ bytes: 1000, free }));
      looked.check();
      return looked.isTight;
    };
    expect([150, 149, 100].map((free) => room(free))).toEqual([false, true, true]);
    expect(room(50, 0)).toBe(false);
    expect(() => room(99)).toThrow(/free on the disk/);
  });
});
