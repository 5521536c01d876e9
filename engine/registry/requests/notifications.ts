/** Writes notifications, as part of commands. */
import type { Transaction } from "../../log/write/commands.js";
import type { NotificationRow } from "../../store/rows.js";

/** Maximum number of notifications for one key. Other keys fill an inbox by sending requests, so it has a limit. */
export const MAX_NOTIFICATIONS = 1000;
/**
 * Number of notifications removed when the inbox is full. Finding them costs a pass over the inbox, so it is done
 * rarely.
 */
export const DROPPED_AT_ONCE = 100;

export interface Notification extends NotificationRow {
  /** Also the id of the log entry that it is about. */
  readonly id: number;
}

/** The key range of one inbox. */
export const inboxOf = (fingerprint: string): [[string, number], [string, number]] => [
  [fingerprint, 0],
  [fingerprint, Number.MAX_SAFE_INTEGER],
];

/**
 * Puts a notification into the inbox of a key. If the inbox is full, the oldest read ones are removed first, then the
 * oldest unread ones. Part of a command.
 * @param id of the entry that it is about, which the command appended
 */
export function notify(
  transaction: Transaction,
  fingerprint: string,
  { id, kind, request_id }: Pick<Notification, "id" | "kind" | "request_id">,
): void {
  let count = transaction.get("inboxes", fingerprint)?.count ?? 0;
  if (count >= MAX_NOTIFICATIONS) {
    const rows = transaction.range("notifications", ...inboxOf(fingerprint));
    const [read, unread] = [rows.filter(({ row }) => row.read), rows.filter(({ row }) => !row.read)];
    for (const { key } of [...read, ...unread].slice(0, DROPPED_AT_ONCE)) {
      transaction.put("notifications", key, undefined);
      count--;
    }
  }
  const created_at = transaction.timestamp;
  transaction.put("notifications", [fingerprint, id], { kind, request_id, created_at, read: false });
  transaction.put("inboxes", fingerprint, { count: count + 1 });
}
