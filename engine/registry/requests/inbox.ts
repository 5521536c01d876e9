/**
 * Inboxes: notifications for the holder of a key about its requests (docs/spec §10.5) and the end of its
 * webhooks. They are private rows, written in the transaction of their event.
 */
import type * as contract from "../../contract/signing/requests.js";
import type { Value } from "../../contract/types.js";
import type { Log } from "../../log/log.js";
import { membersIn } from "../../verify/events/withheld.js";
import type { NotificationKind } from "../../verify/keys/contract.js";
import { type PageRequest, readPaging } from "../keys/directory.js";
import type { Caller, Writes } from "../writes/writes.js";
import { markRead } from "./commands.js";
import { inboxOf, type Notification, notificationView } from "./notifications.js";

/** A notification as its key sees it. */
type ShownNotification = NotificationPage["notifications"][number];

type NotificationPage = Value<typeof contract.NotificationPage>;

const ANSWERS: ReadonlySet<NotificationKind> = new Set([
  "attestation_request_accepted",
  "attestation_request_declined",
]);

export class Inbox {
  readonly #log: Log;
  readonly #writes: Writes;

  /** Use `openRegistry`. */
  constructor({ log, writes }: { readonly log: Log; readonly writes: Writes }) {
    this.#log = log;
    this.#writes = writes;
  }

  /**
   * Notifications of a key, newest first (`GET /inbox`).
   * @param unread true for unread ones, false for read ones, undefined for all
   * @throws CairnlogError `invalid-input` for a page below 1 or not 1 to 200 a page
   */
  list(fingerprint: string, { unread, ...paging }: PageRequest & { readonly unread?: boolean }): NotificationPage {
    const { page, per_page } = readPaging(paging);
    const all = this.#log.rows("notifications", ...inboxOf(fingerprint));
    const selected = unread === undefined ? all : all.filter(({ row }) => row.read !== unread);
    const start = (page - 1) * per_page;
    const rows = selected.reverse().slice(start, start + per_page);
    return {
      notifications: rows.map(({ key: [, id], row }) => this.#shown(notificationView(id, row))),
      page,
      per_page,
      total: selected.length,
    };
  }

  /**
   * Marks a notification as read (`POST /inbox/{id}/read`); doing it again changes nothing.
   * @throws CairnlogError `not-found` if this key has no such notification; and as `Log.execute` does
   */
  async markRead(fingerprint: string, id: number, client: Caller | null = null): Promise<ShownNotification> {
    const { value } = await this.#writes.execute(markRead, { fingerprint, id }, client, fingerprint);
    return this.#shown(value);
  }

  /** Of a notification of an earlier version, its entry says who has answered. */
  #shown({ responder_fingerprint: named, ...notification }: Notification): ShownNotification {
    const isOld = named === undefined && ANSWERS.has(notification.kind);
    const responder = isOld ? membersIn(this.#log.entryOfRow(notification.id)).responder_fingerprint : named;
    return { ...notification, responder_fingerprint: typeof responder === "string" ? responder : null };
  }
}
