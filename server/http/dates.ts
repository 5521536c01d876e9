/** Dates in queries: a day means the whole of it, a date-time its moment; the log compares canonical timestamps. */
import { CairnlogError } from "../../engine/error.js";
import type { Log } from "../../engine/log/log.js";
import { canonicalTimestamp } from "../../engine/verify/entry.js";

const DAY = /^\d{4}-\d\d-\d\d$/;
const DAY_MS = 86_400_000;

/**
 * Leaf indexes [from, to) of the entries from the beginning of `start` to the end of `end`, both included; either may
 * be absent.
 * @throws CairnlogError `invalid-input` for a text that is neither a date nor a date-time with an offset
 */
export function dateRange(
  log: Log,
  start: string | undefined,
  end: string | undefined,
): { from?: number; to?: number } {
  return {
    ...(start === undefined ? {} : { from: log.firstAt(firstMoment(start, "start_date")) }),
    ...(end === undefined ? {} : { to: log.firstAt(momentAfter(end)) }),
  };
}

function firstMoment(text: string, name: string): string {
  const moment = canonicalTimestamp(DAY.test(text) ? `${text}T00:00:00Z` : text);
  if (moment !== undefined) return moment;
  const message = "It must be a date (2025-01-31) or a date and time with an offset (2025-01-31T12:00:00Z).";
  throw new CairnlogError("invalid-input", `/${name}: ${message}`, { details: [{ path: `/${name}`, message }] });
}

/** The first moment that is not in `text` any more. */
function momentAfter(text: string): string {
  const moment = firstMoment(text, "end_date");
  // "z" sorts after the closing "Z": later than this microsecond, before the next.
  if (!DAY.test(text)) return `${moment.slice(0, -1)}z`;
  return `${new Date(Date.parse(moment) + DAY_MS).toISOString().slice(0, -1)}000Z`;
}
