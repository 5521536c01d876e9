/**
 * Webhook subscriptions: which events are delivered to which addresses (`spec.md`, Webhook subscription). All of this
 * is in private rows. `subscriptions.ts` adds rows to the outbox for live appends.
 */
import type { Log } from "../../log/log.js";
import type { WebhookRow } from "../../store/rows.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { deactivate, subscribe } from "./commands.js";
import { toldMembers } from "./events.js";
import { readSubscription, type WebhookInput } from "./input.js";
import { Outbox } from "./outbox.js";
import { mayManage, type Webhook, webhookView } from "./subscriptions.js";

/** The address and the secret of a subscription. */
export type Endpoint = Pick<WebhookRow, "url" | "secret" | "healthy" | "next_probe_at">;

/** The content of a delivery about an entry. */
export interface Told {
  readonly entry_id: number;
  readonly event_type: string;
  readonly entry_hash: string;
  readonly [member: string]: unknown;
}

export class Webhooks {
  readonly outbox: Outbox;
  readonly #log: Log;
  readonly #operator: string;
  readonly #allowPrivate: boolean;

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly log: Log;
    /** Fingerprint of the key that may see every subscription. */
    readonly operator: string;
    readonly allowPrivate: boolean;
  }) {
    this.outbox = new Outbox(parts.log);
    this.#log = parts.log;
    this.#operator = parts.operator;
    this.#allowPrivate = parts.allowPrivate;
  }

  /**
   * Subscribes (`POST /webhooks`). The subscription belongs to the key `owner`, whose possession was proven.
   * @throws CairnlogError `invalid-input`; `precondition-failed` if the key or the host has the maximum number of
   *   subscriptions; and as `Log.execute` does
   */
  async subscribe(subscription: WebhookInput, owner: string): Promise<Webhook> {
    const input = { subscription: readSubscription(subscription, this.#allowPrivate), owner_fingerprint: owner };
    const { value } = await this.#log.execute(subscribe, input);
    return value;
  }

  /** Active subscriptions of the key `asker`, oldest first (`GET /webhooks`); all of them for the operator. */
  list(asker: string): Webhook[] {
    const rows = this.#log.rows("webhooks", 0, Number.MAX_SAFE_INTEGER);
    return rows.filter(({ row }) => mayManage(row, asker, this.#operator)).map(({ key, row }) => webhookView(key, row));
  }

  /**
   * Ends a subscription (`DELETE /webhooks/{webhook_id}`): its row and its secret are removed, and its waiting
   * deliveries are not sent.
   * @returns the subscription as it was, no longer active
   * @throws CairnlogError `not-found` if `asker` may not see a subscription with this id; and as `Log.execute` does
   */
  async deactivate(id: number, asker: string): Promise<Webhook> {
    const input = { id, fingerprint: asker, operator_fingerprint: this.#operator };
    const { value } = await this.#log.execute(deactivate, input);
    return value;
  }

  /** Active subscriptions whose endpoint is unhealthy. */
  get unhealthy(): number {
    return this.#log.rows("webhooks", 0, Number.MAX_SAFE_INTEGER).filter(({ row }) => !row.healthy).length;
  }

  /**
   * Calls `watcher` after batches are on disk that add deliveries for subscriptions or end them, with the ids of these
   * subscriptions; with null after a failure, when any subscription may have new deliveries. It must not throw, and be
   * quick.
   */
  watch(watcher: (webhookIds: readonly number[] | null) => void): void {
    this.#log.observeRows("outbox", (changes) => {
      // A row with a higher attempt is of a delivery that was tried before, so it is not new.
      const added = changes?.filter(({ row }) => row?.attempt === 0);
      if (!added) watcher(null);
      else if (added.length) watcher([...new Set(added.map(({ key: [id] }) => id))]);
    });
    this.#log.observeRows("webhooks", (changes) => {
      const ended = changes?.filter(({ row }) => row === undefined) ?? [];
      if (ended.length) watcher(ended.map(({ key }) => key));
    });
  }

  /** The endpoint of an active subscription; undefined if it has ended. */
  endpoint(id: number): Endpoint | undefined {
    return this.#log.row("webhooks", id);
  }

  /** The content of a delivery about an entry; undefined if there is no such entry. */
  told(entryId: number): Told | undefined {
    const entry = this.#log.entry(entryId);
    if (!entry) return undefined;
    const { event_type, entry_hash, payload } = entry;
    return { entry_id: entryId, event_type, entry_hash, ...toldMembers(payload as JsonObject) };
  }
}
