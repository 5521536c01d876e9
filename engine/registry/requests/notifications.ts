/** Notifications as commands write them. */
import type { Transaction } from "../../log/write/commands.js";
import type { NotificationRow } from "../../store/rows.js";

/** Notifications kept for one key. Whoever sends requests to a key fills its inbox, so it is bounded. */
export const MAX_NOTIFICATIONS = 1000;
/** How many give way when the inbox is full: looking for them costs a pass over it, which is then rare. */
export const DROPPED_AT_ONCE = 100;

export interface Notification extends NotificationRow {
  /** Also the id of the log entry that it tells of. */
  readonly id: number;
}

/** The rows of one inbox. */
export const inboxOf = (fingerprint: string): [[string, number], [string, number]] => [
  [fingerprint, 0],
  [fingerprint, Number.MAX_SAFE_INTEGER],
];

/**
 * Puts a notification into the inbox of a key. When the inbox is full, read ones give way first, the oldest of them
 * first, then unread ones. Part of a command.
 * @param id of the entry that it tells of, which the command appended
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
