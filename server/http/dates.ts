/** Dates in queries: a date means the whole day, a date-time means its moment. */
import { CairnlogError } from "../../engine/base/error.js";
import type { Log } from "../../engine/log/log.js";
import type { Criteria } from "../../engine/log/read/query.js";
import { parseTimestamp } from "../../engine/log/state/clock.js";
import { requestedTime } from "../../engine/verify/tree/entry.js";

const DAY = /^\d{4}-\d\d-\d\d$/;
const DAY_MICROS = 86_400_000_000;

/**
 * The criteria for entries from the beginning of `start` to the end of `end`, both included. Either may be absent.
 * @throws CairnlogError `invalid-input` for a text that is neither a date nor a date-time with an offset
 */
export function dateRange(log: Log, start: string | undefined, end: string | undefined): Pick<Criteria, "within"> {
  if (start === undefined && end === undefined) return {};
  const from = start === undefined ? Number.NEGATIVE_INFINITY : firstMoment(start, "start_date");
  return { within: log.between(from, end === undefined ? Number.POSITIVE_INFINITY : momentAfter(end)) };
}

/** The first moment of `text`, in microseconds. */
function firstMoment(text: string, name: string): number {
  const moment = requestedTime(DAY.test(text) ? `${text}T00:00:00Z` : text);
  if (moment !== undefined) return parseTimestamp(moment);
  const message = "It must be a date (2025-01-31) or a date and time with an offset (2025-01-31T12:00:00Z).";
  throw new CairnlogError("invalid-input", `/${name}: ${message}`, { details: [{ path: `/${name}`, message }] });
}

/** The first moment after `text`, in microseconds. */
function momentAfter(text: string): number {
  return firstMoment(text, "end_date") + (DAY.test(text) ? DAY_MICROS : 1);
}
