/**
 * Webhook subscriptions: which events are delivered to which addresses (docs/spec §16.1). All of this
 * is in private rows. What is to be delivered is read from the log.
 */
import type { Log } from "../../log/log.js";
import type { Writer } from "../../log/state/executor.js";
import type { WebhookRow } from "../../store/schema/rows.js";
import type { JsonObject } from "../../verify/json/shape.js";
import type { WebhookEvent } from "../../verify/keys/contract.js";
import { statusAt } from "../events/keys.js";
import type { TrustService } from "../trust/service.js";
import type { Caller, Writes } from "../writes/writes.js";
import { deactivate, endWithKey, subscribe } from "./commands.js";
import { readSubscription, type WebhookInput } from "./input.js";
import { Outbox } from "./outbox.js";
import { mayManage, toldMembers, type Webhook, webhookEvent, webhookView } from "./subscriptions.js";

/** The address and the secret of a subscription. */
export type Endpoint = Pick<
  WebhookRow,
  "url" | "secret" | "healthy" | "retry_count" | "next_probe_at" | "probe_after_s"
>;

/** What webhooks report about an entry. */
export interface Reported {
  readonly event: WebhookEvent;
  readonly entry_id: number;
  readonly created_at: string;
  readonly payload: JsonObject;
}

/** The content of a delivery about an entry. */
export interface DeliveryContent {
  readonly entry_id: number;
  readonly event_type: string;
  readonly entry_hash: string;
  readonly [member: string]: unknown;
}

interface Parts {
  readonly log: Log;
  readonly writer: Pick<Writer, "execute" | "observeRows">;
  readonly writes: Writes;
  /** Fingerprint of the key that may see every subscription. */
  readonly operator: string;
  readonly allowPrivate: boolean;
  readonly trust: Pick<TrustService, "reaches">;
  /** Maximum number of new subscriptions of an address in 24 hours; null for any number. */
  readonly perAddress: number | null;
}

export class Webhooks {
  readonly #parts: Parts;
  readonly outbox: Outbox;

  /** Use `openRegistry`. */
  constructor(parts: Parts) {
    this.#parts = parts;
    this.outbox = new Outbox(parts.log, parts.writer);
  }

  /**
   * Subscribes (`POST /webhooks`). The subscription belongs to the key `owner`, whose possession was proven.
   * @throws CairnlogError `invalid-input`; `key-not-active`; `precondition-failed` if the key, the host, the address, or all keys
   *   together that no anchor reaches have the maximum number of subscriptions; and as `Log.execute` does
   */
  async subscribe(subscription: WebhookInput, owner: string, client: Caller | null = null): Promise<Webhook> {
    const draft = readSubscription(subscription, this.#parts.allowPrivate);
    // A program that embeds the log writes as the operator does. If the graph cannot be looked at, nobody is reached.
    const is_reached = !client || (await this.#parts.trust.reaches(owner).catch(() => false));
    const subscriber = { owner_fingerprint: owner, is_reached, address: client?.address ?? null };
    const input = { ...subscriber, subscription: draft, per_address: this.#parts.perAddress };
    const { value } = await this.#parts.writes.execute(subscribe, input, client, owner);
    return value;
  }

  /** Active subscriptions of the key `asker`, oldest first (`GET /webhooks`); all of them for the operator. */
  list(asker: string): Webhook[] {
    const rows = this.#parts.log.rows("webhooks", 0, Number.MAX_SAFE_INTEGER);
    return rows
      .filter(({ row }) => mayManage(row, asker, this.#parts.operator))
      .map(({ key, row }) => webhookView(key, row));
  }

  /**
   * Ends a subscription (`DELETE /webhooks/{webhook_id}`): its row and its secret are removed, and its waiting
   * deliveries are not sent.
   * @returns the subscription as it was, no longer active
   * @throws CairnlogError `not-found` if `asker` may not see a subscription with this id; and as `Log.execute` does
   */
  async deactivate(id: number, asker: string): Promise<Webhook> {
    const input = { id, fingerprint: asker, operator_fingerprint: this.#parts.operator };
    // Not by `Writes`: it stores nothing, so nobody pays, and a key that may not write any more can end what it began.
    const { value } = await this.#parts.writer.execute(deactivate, input);
    return value;
  }

  /** All subscriptions, as they are on disk. */
  all(): readonly { readonly key: number; readonly row: WebhookRow }[] {
    return this.#parts.log.rows("webhooks", 0, Number.MAX_SAFE_INTEGER);
  }

  /**
   * Calls `watcher.grown` when the log may have grown, `watcher.changed` after batches are on disk that change
   * subscriptions, and `watcher.keyChanged` after those that end a key, or change one that expires: its holder may have said
   * when. After a failure, `changed` gets null: any subscription and any key may have changed. They must not throw, and be quick.
   * @returns a function that ends this
   */
  watch(watcher: {
    readonly grown: () => void;
    readonly changed: (
      changes: readonly { readonly key: number; readonly row: WebhookRow | undefined }[] | null,
    ) => void;
    readonly keyChanged: (fingerprint: string) => void;
  }): () => void {
    const stop = this.#parts.log.observeSize(watcher.grown);
    this.#parts.writer.observeRows("webhooks", watcher.changed);
    this.#parts.writer.observeRows("keys", (changes) => {
      for (const { key, row } of changes ?? [])
        if (row?.status !== "active" || row.expires_at !== null) watcher.keyChanged(key);
    });
    return () => {
      stop();
      this.#parts.writer.observeRows("webhooks", () => {});
      this.#parts.writer.observeRows("keys", () => {});
    };
  }

  /** Number of entries in the log. */
  get size(): number {
    return this.#parts.log.size;
  }

  /**
   * Ends those of the subscriptions whose key has ended.
   * @returns the ids of those that were ended
   * @throws CairnlogError as `Log.execute` does
   */
  async endWithKey(ids: readonly number[]): Promise<readonly number[]> {
    const { value } = await this.#parts.writer.execute(endWithKey, { ids });
    return value;
  }

  /** Whether a key is active at a time in canonical form, and when it expires. Undefined without a row. */
  ownerAt(
    fingerprint: string,
    time: string,
  ): { readonly isActive: boolean; readonly expires_at: string | null } | undefined {
    const row = this.#parts.log.row("keys", fingerprint);
    return row && { isActive: statusAt(row, time) === "active", expires_at: row.expires_at };
  }

  /** The endpoint of an active subscription; undefined if it has ended. */
  endpoint(id: number): Endpoint | undefined {
    return this.#parts.log.row("webhooks", id);
  }

  /**
   * What webhooks report about the entry at a leaf index of the log; undefined if nothing.
   * @throws CairnlogError `corrupt-log`, `storage-failed`
   */
  eventAt(leafIndex: number): Reported | undefined {
    const entry = this.#parts.log.entryAt(leafIndex);
    const payload = entry?.payload as JsonObject | null | undefined;
    if (!entry || !payload) return undefined;
    const event = webhookEvent({ event_type: entry.event_type, payload });
    return event && { event, entry_id: entry.id, created_at: entry.timestamp, payload };
  }

  /** The content of a delivery about an entry; undefined if there is no such entry. */
  told(entryId: number): DeliveryContent | undefined {
    const entry = this.#parts.log.entry(entryId);
    if (!entry) return undefined;
    const { event_type, entry_hash, payload } = entry;
    return { entry_id: entryId, event_type, entry_hash, ...toldMembers((payload ?? {}) as JsonObject) };
  }
}
