/**
 * Quotas per key, as rows beside the log. A command takes from a quota in the same transaction as the counted change.
 * So a command that fails takes nothing, a restart forgets nothing, and memory does not grow with the number of keys.
 */
import { CairnlogError } from "../../base/error.js";
import { formatTimestamp, parseTimestamp } from "../../log/state/clock.js";
import type { Transaction } from "../../log/state/commands.js";
import type { KeyOf } from "../../store/schema/schema.js";

/** How much a command takes, and for how long it counts. */
interface QuotaUse {
  readonly amount: number;
  readonly hours: number;
  /** Names the counted things in the text of the refusal. */
  readonly unit: string;
}

const HOUR = 3_600_000_000;
const ONE_AN_HOUR: QuotaUse = { amount: 1, hours: 1, unit: "" };

/**
 * Takes from the quota of `key`. A period begins with the first use after the end of the last period. Part of a
 * command; call it after all other checks that can refuse the command.
 * @param limit for one period; null if there is none
 * @throws CairnlogError `rate-limited`, with the seconds until the period ends
 */
export function takeFromQuota(
  transaction: Transaction,
  key: KeyOf<"quotas">,
  limit: number | null,
  { amount, hours, unit }: QuotaUse = ONE_AN_HOUR,
): void {
  if (limit === null) return;
  const { timestamp } = transaction;
  const row = transaction.get("quotas", key);
  const ends = (startedAt: string) => parseTimestamp(startedAt) + hours * HOUR;
  const isOver = !row || formatTimestamp(ends(row.started_at)) <= timestamp;
  const { started_at, used } = isOver ? { started_at: timestamp, used: 0 } : row;
  if (used + amount > limit) {
    const retryAfter = Math.ceil((ends(started_at) - parseTimestamp(timestamp)) / 1_000_000);
    const time = hours === 1 ? "an hour" : `in ${hours} hours`;
    const reason = `The quota of ${limit}${unit} ${time} for the key ${key[1]} is used up. Try again in ${retryAfter} seconds.`;
    throw new CairnlogError("rate-limited", reason, { retryAfter });
  }
  transaction.put("quotas", key, { started_at, used: used + amount });
}
