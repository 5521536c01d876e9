/** The log's time after the system clock has been set. */
import { afterEach, expect, test, vi } from "vitest";
import { systemClock } from "#cairnlog/engine/log/clock.js";

const HOUR_MS = 3_600_000;

afterEach(() => {
  vi.restoreAllMocks();
});

/** Sets the time of day off by this number of milliseconds from now on. */
function setDay(ahead: number): void {
  const now = performance.timeOrigin + performance.now() + ahead;
  const began = performance.now();
  vi.spyOn(Date, "now").mockImplementation(() => Math.floor(now + performance.now() - began));
}

test("the clock follows a time of day that is set, to within its step", () => {
  const offset = () => systemClock() / 1000 - Date.now();
  for (const ahead of [0, HOUR_MS, -HOUR_MS, 365 * 24 * HOUR_MS, 0]) {
    setDay(ahead);
    expect(Math.abs(offset())).toBeLessThanOrEqual(100);
  }
});

test("between two readings it never steps back, and it counts microseconds", () => {
  const readings = Array.from({ length: 100_000 }, systemClock);
  for (const [i, reading] of readings.entries()) {
    expect(Number.isSafeInteger(reading)).toBe(true);
    if (i && reading < readings[i - 1]!) expect.fail(`${reading} after ${readings[i - 1]}`);
  }
  expect(readings.some((reading) => reading % 1000 !== 0)).toBe(true);
});
