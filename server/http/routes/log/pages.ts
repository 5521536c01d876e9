/**
 * Pages of entries. Long searches run in slices, and large pages are sent in pieces. Clients decide how large both are,
 * and all other requests wait on the same thread.
 */

import { CairnlogError } from "../../../../engine/base/error.js";
import type { Log } from "../../../../engine/log/log.js";
import type { Criteria, Matches } from "../../../../engine/log/read/query.js";
import { parseTimestamp } from "../../../../engine/log/state/clock.js";
import { isFingerprint } from "../../../../engine/registry/events/keys.js";
import type { Slices } from "../../../../engine/registry/shared/slices.js";
import { KEY_MEMBERS } from "../../../../engine/verify/events/kinds.js";
import { membersIn } from "../../../../engine/verify/events/withheld.js";
import { requestedTime } from "../../../../engine/verify/tree/entry.js";
import { type Answer, jsonList } from "../../transport/answer.js";

/** The parts that are needed to find entries. */
interface Finder {
  readonly log: Log;
  /** Runs long queries in turns. */
  readonly queries: Slices;
}

interface Paging {
  readonly page: number;
  readonly per_page: number;
  /** `true`: the answer has the names of the keys that the entries name. */
  readonly names?: string;
}

/** Leaf indexes of a page. They are returned at once, unless finding them takes more than a slice. */
export function findMatches({ log, queries }: Finder, criteria: Criteria, paging: Paging): Matches | Promise<Matches> {
  const work = log.matching(criteria, (paging.page - 1) * paging.per_page, paging.per_page);
  const { done, value } = work.next();
  return done ? value : queries.run(work);
}

/** A page of entries as they are served. */
export function entryPage(
  finder: Finder,
  { page, per_page, names }: Paging,
  criteria: Criteria,
): Answer | Promise<Answer> {
  const answer = ({ indexes, total }: Matches) => {
    const rest = { page, per_page, total, ...(names === "true" ? { names: namesIn(finder.log, indexes) } : {}) };
    return jsonList("entries", indexes.length, (i) => finder.log.entryJsonAt(indexes[i]!)!, rest);
  };
  const found = findMatches(finder, criteria, { page, per_page });
  return found instanceof Promise ? found.then(answer) : answer(found);
}

/** The names of the registered keys that these entries name, by fingerprint. */
function namesIn(log: Log, indexes: readonly number[]): Record<string, string> {
  const names: Record<string, string> = {};
  for (const index of indexes)
    for (const [member, value] of Object.entries(membersIn(log.entryAt(index)!))) {
      if (!KEY_MEMBERS.has(member) || !isFingerprint(value) || value in names) continue;
      const key = log.row("keys", value);
      if (key) names[value] = key.pseudonym;
    }
  return names;
}

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
