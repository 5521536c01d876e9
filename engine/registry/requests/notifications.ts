/** Writes notifications, as part of commands. */
import type { Transaction } from "../../log/state/commands.js";
import type { NotificationRow } from "../../store/schema/rows.js";
import { confirmedChain } from "../events/keys.js";

/** Maximum number of notifications for one key. Other keys fill an inbox by sending requests, so it has a limit. */
const MAX_NOTIFICATIONS = 1000;
/**
 * Number of notifications removed when the inbox is full. Finding them costs a pass over the inbox, so it is done
 * rarely.
 */
const DROPPED_AT_ONCE = 100;

/** A notification as it is served. */
export interface Notification
  extends Pick<
    NotificationRow,
    "kind" | "request_id" | "responder_fingerprint" | "webhook_id" | "reason" | "created_at" | "read"
  > {
  /** Unique in its inbox; later ones have higher ids. */
  readonly id: number;
}

export const notificationView = (id: number, { entry_id: _, ...row }: NotificationRow): Notification => ({
  id,
  ...row,
});

/** The key range of one inbox. */
export const inboxOf = (fingerprint: string): [[string, number], [string, number]] => [
  [fingerprint, 0],
  [fingerprint, Number.MAX_SAFE_INTEGER],
];

/** Tells the holder of a key about an event of a request. Part of the command that appended the entry `id`. */
export function notify(
  transaction: Transaction,
  fingerprint: string,
  { id, ...row }: Pick<NotificationRow, "kind" | "request_id" | "responder_fingerprint"> & { readonly id: number },
): void {
  put(transaction, fingerprint, id, (place) => (place === id ? row : { ...row, entry_id: id }));
}

/** Tells the holder of a key that a webhook subscription has ended. There is no entry about that. Part of a command. */
export function notifyOfWebhook(
  transaction: Transaction,
  fingerprint: string,
  about: Required<Pick<NotificationRow, "webhook_id" | "reason">>,
): void {
  put(transaction, fingerprint, transaction.lastId + 1, () => ({ kind: "webhook_ended", request_id: null, ...about }));
}

/**
 * Puts a notification into the inbox of a key. If the key was succeeded, nobody can read its inbox: the newest key that has
 * signed to be its successor gets it. Others name a successor without asking it. If the inbox is full, the oldest read ones
 * are removed first, then the oldest unread ones.
 * @param wanted its id, unless that is taken: a notification without an entry has the id of an entry that does not exist yet
 */
function put(
  transaction: Transaction,
  notified: string,
  wanted: number,
  rowAt: (id: number) => Omit<NotificationRow, "created_at" | "read">,
): void {
  const fingerprint = [...confirmedChain(transaction, notified)].at(-1)!;
  let count = transaction.get("inboxes", fingerprint)?.count ?? 0;
  if (count >= MAX_NOTIFICATIONS) {
    const rows = transaction.range("notifications", ...inboxOf(fingerprint));
    const [read, unread] = [rows.filter(({ row }) => row.read), rows.filter(({ row }) => !row.read)];
    for (const { key } of [...read, ...unread].slice(0, DROPPED_AT_ONCE)) {
      transaction.put("notifications", key, undefined);
      count--;
    }
  }
  // An inbox is bounded, and so is this loop.
  let id = wanted;
  while (transaction.get("notifications", [fingerprint, id])) id++;
  const created_at = transaction.timestamp;
  transaction.put("notifications", [fingerprint, id], { ...rowAt(id), created_at, read: false });
  transaction.put("inboxes", fingerprint, { count: count + 1 });
}
