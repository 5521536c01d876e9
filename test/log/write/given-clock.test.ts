/** A clock that a program gives to `openLog`: it may give numbers that no timestamp can spell. */
import { describe, expect, test } from "vitest";
import { formatTimestamp } from "#cairnlog/engine/log/state/clock.js";
import { openTestLog, temporaryFolder } from "../harness.js";

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5, 678) * 1000;
const SUSPECT = {
  code: "clock-suspect",
  message: "`clock` must give microseconds since the epoch. Nothing is written.",
};
const event = { event_type: "note", payload: {} };

test("parts of a microsecond are left out, and the log opens again", async () => {
  const now = Date.now() * 1000 + 901;
  const { log, path } = await openTestLog({ clock: () => now + 0.75 });
  const { timestamp, sth } = await log.append(event);
  expect([timestamp, sth.timestamp]).toEqual([formatTimestamp(now), formatTimestamp(now)]);
  expect((await log.verify()).errors).toEqual([]);
  await log.close();
  const again = await openTestLog({ path });
  expect((await again.log.append(event)).leaf_index).toBe(1);
});

const fail = (): never => {
  throw new Error("The clock is out of order.");
};

describe.each<[string, () => number]>([
  ["nanoseconds", () => NOW * 1000],
  ["no number", () => Number.NaN],
  ["no end of time", () => Number.POSITIVE_INFINITY],
  ["nothing", () => undefined as unknown as number],
  ["a BigInt", () => BigInt(NOW) as unknown as number],
  ["an error", fail],
])("%s", (_, reading) => {
  test("no log begins by it", async () => {
    await expect(openTestLog({ clock: reading })).rejects.toMatchObject(SUSPECT);
  });

  test("an append is refused until the clock is right again", async () => {
    let now = () => NOW;
    const { log } = await openTestLog({ path: temporaryFolder(), clock: () => now() });
    await log.append(event);
    now = reading;
    await expect(log.append(event)).rejects.toMatchObject(SUSPECT);
    await expect(log.signHead()).rejects.toMatchObject(SUSPECT);
    now = () => NOW + 1;
    expect((await log.append(event)).timestamp).toBe("2026-01-02T03:04:05.678001Z");
    expect((await log.verify()).errors).toEqual([]);
  });

  test("the heads of a batch for which it fails have the time of its newest entry", async () => {
    const readings = [() => NOW, () => NOW + 2, reading];
    const { log } = await openTestLog({ clock: () => (readings.length ? readings.shift()!() : NOW + 3) });
    expect((await log.append(event)).sth.timestamp).toBe("2026-01-02T03:04:05.678002Z");
    expect((await log.verify()).errors).toEqual([]);
  });
});
