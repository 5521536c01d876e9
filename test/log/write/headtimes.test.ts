/**
 * Times of heads never go back: for every change of the clock, across restarts and failures, and also for heads that
 * are signed on request.
 */
import { expect, test } from "vitest";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { FakeJournal } from "../../journal/fakejournal.js";
import { openFaultyLog, openTestLog } from "../harness.js";

const SECOND = 1_000_000;
const NOON = Date.UTC(2026, 0, 1, 12) * 1000;
const event = { event_type: "note", payload: {} };

/** A clock that the test sets, and the times of the heads that were signed with it. */
class World {
  now = NOON;
  readonly times: string[] = [];
  readonly clock = () => this.now;

  async append(log: LogWriter): Promise<void> {
    const { timestamp, sth } = await log.append(event);
    this.times.push(timestamp, sth.timestamp);
  }

  async sign(log: LogWriter): Promise<void> {
    this.times.push((await log.signHead()).timestamp);
  }

  expectAscending(): void {
    expect(this.times).toEqual([...this.times].sort());
  }
}

test("after a restart with a clock that has stepped back", async () => {
  const world = new World();
  const { log, path } = await openTestLog({ clock: world.clock });
  await world.append(log);
  world.now += 60 * SECOND;
  // Nothing is appended at this time, and the head is not stored.
  await world.sign(log);
  expect(world.times.at(-1)).toBe("2026-01-01T12:01:00.000000Z");
  await log.close();
  for (const first of ["append", "sign"] as const) {
    world.now = NOON - 3600 * SECOND;
    const { log: again } = await openTestLog({ path, clock: world.clock });
    await world[first](again);
    world.now += 1;
    await world.append(again);
    await world.sign(again);
    world.expectAscending();
    await again.close();
  }
  world.now = NOON + 120 * SECOND;
  const { log: last } = await openTestLog({ path, clock: world.clock });
  await world.append(last);
  expect(world.times.at(-1)).toBe("2026-01-01T12:02:00.000000Z");
  world.expectAscending();
});

test("after a commit that failed while the clock stepped back", async () => {
  const world = new World();
  const { log, faults } = await openFaultyLog({ clock: world.clock });
  await world.append(log);
  world.now += 60 * SECOND;
  await world.sign(log);
  world.now = NOON;
  faults.plan = ["not persisted"];
  await expect(log.append(event)).rejects.toMatchObject({ code: "storage-failed" });
  await world.append(log);
  await world.sign(log);
  world.expectAscending();
});

test("no head is signed on demand when its time cannot be written down", async () => {
  const world = new World();
  const { log, faults } = await openFaultyLog({ clock: world.clock });
  await world.append(log);
  faults.plan = ["not persisted"];
  await expect(log.signHead()).rejects.toMatchObject({ code: "storage-failed" });
  await world.sign(log);
  world.expectAscending();
});

test("on another node, which has them from the journal", async () => {
  const world = new World();
  const journal = new FakeJournal();
  const { log } = await openTestLog({ clock: world.clock, journal });
  const { log: other } = await openTestLog({ clock: world.clock, journal });
  await world.append(log);
  world.now += 60 * SECOND;
  await world.sign(log);
  world.now = NOON - 3600 * SECOND;
  // It learns of the records when its own is refused.
  await expect(other.append(event)).rejects.toMatchObject({ code: "storage-failed" });
  await world.append(other);
  await world.sign(other);
  world.expectAscending();
});
