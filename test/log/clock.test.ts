/** The log's time after the system clock has been set, and timestamps as text. */
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { formatTimestamp, instantOf, microsOf, parseTimestamp, systemClock } from "#cairnlog/engine/log/state/clock.js";

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

describe("with clocks that the test sets", () => {
  const DAY = 2_000_000_001_000;

  /** Sets both clocks; the log's then says `DAY`, in microseconds. */
  function setClocks() {
    const day = vi.spyOn(Date, "now").mockReturnValue(DAY);
    const elapsed = vi.spyOn(performance, "now").mockReturnValue(1_000.25);
    expect(systemClock()).toBe(DAY * 1000);
    return { day, elapsed };
  }

  test("a moment is the last microsecond that has begun", () => {
    const { elapsed } = setClocks();
    // 2.44 microseconds later.
    elapsed.mockReturnValue(1_000.25 + 5 * 2 ** -11);
    expect(systemClock()).toBe(DAY * 1000 + 2);
  });

  test("a time of day that is a tenth of a second off is not believed, and one that is further off is", () => {
    const { day } = setClocks();
    for (const off of [100, -100]) {
      day.mockReturnValue(DAY + off);
      expect(systemClock()).toBe(DAY * 1000);
    }
    day.mockReturnValue(DAY + 101);
    expect(systemClock()).toBe((DAY + 101) * 1000);
  });

  test("one reading that is far off, because the process had to wait, does not move the time", () => {
    const { day } = setClocks();
    day.mockReturnValue(DAY + 50).mockReturnValueOnce(DAY + HOUR_MS);
    expect(systemClock()).toBe(DAY * 1000);
    expect(systemClock()).toBe(DAY * 1000);
  });
});

describe("a timestamp", () => {
  test.each([
    [0, "1970-01-01T00:00:00.000000Z"],
    [1, "1970-01-01T00:00:00.000001Z"],
    [1_000, "1970-01-01T00:00:00.001000Z"],
    [1_767_268_799_999_999, "2026-01-01T11:59:59.999999Z"],
    [1_767_268_800_000_010, "2026-01-01T12:00:00.000010Z"],
    [1_767_268_800_010_000, "2026-01-01T12:00:00.010000Z"],
  ])("of %i microseconds is %s", (micros, text) => {
    expect(formatTimestamp(micros)).toBe(text);
    expect(parseTimestamp(text)).toBe(micros);
    expect(microsOf(text)).toBe(micros);
  });

  test("means the moment it was made of, for any moment and its neighbours", () => {
    fc.assert(
      fc.property(fc.nat(8_000_000_000_000_000), (micros) => {
        const texts = [micros, micros + 1, micros + 999].map(formatTimestamp);
        expect(texts.map(parseTimestamp)).toEqual([micros, micros + 1, micros + 999]);
        expect(texts.toSorted()).toEqual(texts);
      }),
    );
  });

  test.each([
    ["2024-02-03t04:05:06,5z", "2024-02-03T04:05:06.500000Z"],
    ["2024-02-03 04:05 Z", "2024-02-03T04:05:00.000000Z"],
    ["2024-02-03 04:05:06.25 -0530", "2024-02-03T09:35:06.250000Z"],
    ["2024-02-03 04:05:06.123456789+01", "2024-02-03T03:05:06.123456Z"],
  ])("that was imported as %s means %s", (spelled, meant) => {
    expect(instantOf(spelled)).toBe(meant);
    expect(microsOf(spelled)).toBe(parseTimestamp(meant));
  });

  test.each(["x2024-02-03", "2024-02-03x", "on 2024-02-03 04:05", "2024-02-03 04:05:06 UTC", "2024-02-03T04", ""])(
    "that is none has no moment: %j",
    (text) => {
      expect(instantOf(text)).toBeUndefined();
      expect(microsOf(text)).toBe(0);
    },
  );
});
