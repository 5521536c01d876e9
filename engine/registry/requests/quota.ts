/**
 * Hourly quotas per key, as rows beside the log. A command takes from a quota in the same transaction as the counted
 * change. So a command that fails takes nothing, a restart forgets nothing, and memory does not grow with the number of
 * keys.
 */
import { CairnlogError } from "../../error.js";
import { formatTimestamp, parseTimestamp } from "../../log/clock.js";
import type { Transaction } from "../../log/write/commands.js";
import type { KeyOf } from "../../store/schema.js";

const HOUR = 3_600_000_000;

/**
 * Takes one from the quota of `key`. An hour begins with the first use after the end of the last hour. Part of a
 * command; call it after all other checks that can refuse the command.
 * @param limit for one hour; null if there is none
 * @throws CairnlogError `rate-limited`, with the seconds until the hour ends
 */
export function takeFromQuota(transaction: Transaction, key: KeyOf<"quotas">, limit: number | null): void {
  if (limit === null) return;
  const { timestamp } = transaction;
  const row = transaction.get("quotas", key);
  const end = row && parseTimestamp(row.started_at) + HOUR;
  if (!row || formatTimestamp(end!) <= timestamp) {
    transaction.put("quotas", key, { started_at: timestamp, used: 1 });
    return;
  }
  if (row.used >= limit) {
    const retryAfter = Math.ceil((end! - parseTimestamp(timestamp)) / 1_000_000);
    const reason = `The quota of ${limit} an hour for the key ${key[1]} is used up. Try again in ${retryAfter} seconds.`;
    throw new CairnlogError("rate-limited", reason, { retryAfter });
  }
  transaction.put("quotas", key, { ...row, used: row.used + 1 });
}
