/** The moments that dates in a query stand for. */
import { expect, test } from "vitest";
import type { Log } from "#cairnlog/engine/log/log.js";
import { dateRange } from "#cairnlog/server/http/routes/log/pages.js";

const DAY = 86_400_000_000;
const NEW_YEAR = Date.UTC(2025, 0, 1) * 1000;

/** From the first moment to the one after the last, in microseconds. */
const moments = (start?: string, end?: string) =>
  dateRange({ between: (from: number, to: number) => [from, to] } as unknown as Log, start, end).within;

test.each([
  [undefined, undefined, undefined],
  ["2025-01-01", undefined, [NEW_YEAR, Number.POSITIVE_INFINITY]],
  [undefined, "2025-01-01", [Number.NEGATIVE_INFINITY, NEW_YEAR + DAY]],
  ["2025-01-01", "2025-01-02", [NEW_YEAR, NEW_YEAR + 2 * DAY]],
  ["2025-01-01T01:00:00+01:00", "2025-01-01T00:00:00.000007Z", [NEW_YEAR, NEW_YEAR + 8]],
])("from %s to %s", (start, end, expected) => {
  expect(moments(start, end)).toEqual(expected);
});

test.each([
  ["yesterday", undefined, "/start_date"],
  ["2025-02-30", undefined, "/start_date"],
  ["2025-01-01", "2025-01-01T00:00:00", "/end_date"],
  [undefined, "2025-01-01 ", "/end_date"],
])("neither a date nor a moment: %j to %j", (start, end, path) => {
  expect(() => moments(start, end)).toThrow(
    expect.objectContaining({ code: "invalid-input", details: [expect.objectContaining({ path })] }),
  );
});
