/** How many entries were recorded when, from the first entry of a log until now. */

import { turn } from "../../../../engine/base/turns.js";
import type { Log } from "../../../../engine/log/log.js";
import { formatTimestamp, systemClock } from "../../../../engine/log/state/clock.js";
import { microsOf } from "../../../../engine/log/state/instant.js";

interface Activity {
  readonly start: string;
  readonly end: string;
  /** Entries in each period, oldest first. */
  readonly counts: readonly number[];
}

/** The activity of a log with entries, in `periods` equal periods. Each is found by two searches, in a turn of its own. */
export async function activityOf(log: Log, periods: number): Promise<Activity> {
  const [first, newest] = [microsAt(log, 0), microsAt(log, log.size - 1)];
  // Imported history may have been recorded in any order, and by a clock that was ahead.
  const start = Math.min(first, newest);
  const end = Math.max(systemClock(), newest + 1);
  const counts: number[] = [];
  const borderOf = (period: number) => start + Math.round(((end - start) * period) / periods);
  for (let period = 0; period < periods; period++) {
    await turn();
    const stretches = log.between(borderOf(period), borderOf(period + 1));
    counts.push(stretches.reduce((sum, { from, to }) => sum + to - from, 0));
  }
  return { start: formatTimestamp(start), end: formatTimestamp(end), counts };
}

const microsAt = (log: Log, leafIndex: number): number => microsOf(log.entryAt(leafIndex)!.timestamp);
