/**
 * Webhook subscriptions: who wants to be told of what, and where (`spec.md`, Webhook subscription). All of it is private
 * rows. What live appends add to the outbox for them is in `subscribers.ts`.
 */
import { CairnlogError } from "../../error.js";
import type { Log } from "../../log/log.js";
import type { WebhookRow } from "../../store/schema.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { toldMembers } from "./events.js";
import { readSubscription, type WebhookInput } from "./input.js";
import { Outbox } from "./outbox.js";
import type { Subscriber, Subscribers } from "./subscribers.js";

/** Active subscriptions of one key. */
export const MAX_PER_KEY = 100;
/** And of all keys: every one of them may be told of every entry, which is a row in its transaction. */
export const MAX_IN_ALL = 1_000;

/** A subscription as its owner sees it: without the secret. */
export interface Webhook
  extends Pick<
    WebhookRow,
    "url" | "events" | "key_fingerprint" | "document_hash" | "healthy" | "retry_count" | "created_at"
  > {
  readonly id: number;
  readonly active: boolean;
}

/** Where and how to deliver. */
export type Endpoint = Pick<WebhookRow, "url" | "secret" | "healthy" | "next_probe_at">;

/** An entry as a delivery tells of it. */
export interface Told {
  readonly entry_id: number;
  readonly event_type: string;
  readonly entry_hash: string;
  readonly [member: string]: unknown;
}

export class Webhooks {
  readonly outbox: Outbox;
  readonly #log: Log;
  readonly #subscribers: Subscribers;
  readonly #operator: string;
  readonly #allowPrivate: boolean;

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly log: Log;
    /** What the log's projection was extended by. */
    readonly subscribers: Subscribers;
    /** Fingerprint of the key that sees every subscription. */
    readonly operator: string;
    readonly allowPrivate: boolean;
  }) {
    this.outbox = new Outbox(parts.log);
    this.#log = parts.log;
    this.#subscribers = parts.subscribers;
    this.#operator = parts.operator;
    this.#allowPrivate = parts.allowPrivate;
  }

  /**
   * Subscribes (`POST /webhooks`). The subscription belongs to the key `owner`, which was proven.
   * @throws CairnlogError `invalid-input`; `precondition-failed` when the key, or the service, has as many as it may;
   *   and as `Log.execute` does
   */
  async subscribe(subscription: WebhookInput, owner: string): Promise<Webhook> {
    const draft = readSubscription(subscription, this.#allowPrivate);
    const { value } = await this.#log.execute((transaction) => {
      checkRoom(this.#subscribers.active(transaction), owner);
      const id = (transaction.get("counters", "webhook")?.last ?? 0) + 1;
      const health = { healthy: true, retry_count: 0, next_probe_at: null };
      const row = { ...draft, owner_fingerprint: owner, ...health, created_at: transaction.timestamp };
      transaction.put("counters", "webhook", { last: id });
      this.#subscribers.put(id, row, transaction);
      return view(id, row);
    });
    return value;
  }

  /** Active subscriptions of the key `asker`, oldest first (`GET /webhooks`); all of them for the operator. */
  list(asker: string): Webhook[] {
    const rows = this.#log.rows("webhooks", 0, Number.MAX_SAFE_INTEGER);
    return rows.filter(({ row }) => this.#mayManage(row, asker)).map(({ key, row }) => view(key, row));
  }

  /**
   * Ends a subscription (`DELETE /webhooks/{webhook_id}`): its row goes, its secret with it, and what was not delivered
   * is not delivered any more.
   * @returns the subscription as it was, no longer active
   * @throws CairnlogError `not-found` when there is none with this id that `asker` may see; and as `Log.execute` does
   */
  async deactivate(id: number, asker: string): Promise<Webhook> {
    const { value } = await this.#log.execute((transaction) => {
      const row = transaction.get("webhooks", id);
      if (!row || !this.#mayManage(row, asker))
        throw new CairnlogError("not-found", `There is no active webhook ${id} of this key.`);
      this.#subscribers.put(id, undefined, transaction);
      return { ...view(id, row), active: false };
    });
    this.#subscribers.touch(id);
    return value;
  }

  /** Active subscriptions whose endpoint is unhealthy. */
  get unhealthy(): number {
    return this.#log.rows("webhooks", 0, Number.MAX_SAFE_INTEGER).filter(({ row }) => !row.healthy).length;
  }

  /** As `Subscribers.watch`: also called for a subscription that has ended. */
  watch(watcher: (webhookId: number) => void): void {
    this.#subscribers.watch(watcher);
  }

  /** Where an active subscription is to be told; undefined when it has ended. */
  endpoint(id: number): Endpoint | undefined {
    return this.#log.row("webhooks", id);
  }

  /** What a delivery says of an entry; undefined when there is none. */
  told(entryId: number): Told | undefined {
    const entry = this.#log.entry(entryId);
    if (!entry) return undefined;
    const { event_type, entry_hash, payload } = entry;
    return { entry_id: entryId, event_type, entry_hash, ...toldMembers(payload as JsonObject) };
  }

  #mayManage(row: WebhookRow, asker: string): boolean {
    return row.owner_fingerprint === asker || asker === this.#operator;
  }
}

function checkRoom(active: ReadonlyMap<number, Subscriber>, owner: string): void {
  const own = [...active.values()].filter(({ owner_fingerprint }) => owner_fingerprint === owner);
  if (own.length >= MAX_PER_KEY)
    throw new CairnlogError("precondition-failed", `This key has ${MAX_PER_KEY} webhooks. Delete one first.`);
  if (active.size >= MAX_IN_ALL)
    throw new CairnlogError("precondition-failed", `The service has ${MAX_IN_ALL} webhooks and takes no more.`);
}

function view(id: number, row: WebhookRow): Webhook {
  const { url, events, key_fingerprint, document_hash, healthy, retry_count, created_at } = row;
  return { id, url, events, key_fingerprint, document_hash, active: true, healthy, retry_count, created_at };
}
