/**
 * Inboxes: what happened to requests that a key's holder should see (`spec.md`, Inbox notifications). Private rows,
 * written in the transaction of the event that they tell of; everything in them can be found in the log, too.
 */
import { CairnlogError } from "../../error.js";
import type { Log } from "../../log/log.js";
import type { Transaction } from "../../log/write/transaction.js";
import type { NotificationRow } from "../../store/schema.js";
import { type Paging, readPaging } from "../keys/directory.js";

/** Notifications kept for one key. Whoever sends requests to a key fills its inbox, so it is bounded. */
export const MAX_NOTIFICATIONS = 1000;
/** How many give way when the inbox is full: looking for them costs a pass over it, which is then rare. */
export const DROPPED_AT_ONCE = 100;

export interface Notification extends NotificationRow {
  /** Also the id of the log entry that it tells of. */
  readonly id: number;
}

export interface NotificationPage {
  readonly notifications: readonly Notification[];
  readonly page: number;
  readonly per_page: number;
  readonly total: number;
}

const rangeOf = (fingerprint: string): [[string, number], [string, number]] => [
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
    const rows = transaction.range("notifications", ...rangeOf(fingerprint));
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

export class Inbox {
  readonly #log: Log;

  /** Use `openRegistry`. */
  constructor({ log }: { readonly log: Log }) {
    this.#log = log;
  }

  /**
   * Notifications of a key, newest first (`GET /inbox`).
   * @param unread true for those that were not read, false for those that were, undefined for all
   * @throws CairnlogError `invalid-input` for a page below 1 or not 1 to 200 a page
   */
  list(fingerprint: string, { unread, ...paging }: Paging & { readonly unread?: boolean }): NotificationPage {
    const { page, perPage } = readPaging(paging);
    const all = this.#log.rows("notifications", ...rangeOf(fingerprint));
    const selected = unread === undefined ? all : all.filter(({ row }) => row.read !== unread);
    const start = (page - 1) * perPage;
    const rows = selected.reverse().slice(start, start + perPage);
    return {
      notifications: rows.map(({ key: [, id], row }) => ({ id, ...row })),
      page,
      per_page: perPage,
      total: selected.length,
    };
  }

  /**
   * Marks a notification as read (`POST /inbox/{id}/read`); doing it again changes nothing.
   * @throws CairnlogError `not-found` when this key has no such notification; and as `Log.execute` does
   */
  async markRead(fingerprint: string, id: number): Promise<Notification> {
    const { value } = await this.#log.execute((transaction) => {
      const row = transaction.get("notifications", [fingerprint, id]);
      if (!row) throw new CairnlogError("not-found", `There is no notification ${id} in this inbox.`);
      const read = { ...row, read: true };
      if (!row.read) transaction.put("notifications", [fingerprint, id], read);
      return { id, ...read };
    });
    return value;
  }
}
