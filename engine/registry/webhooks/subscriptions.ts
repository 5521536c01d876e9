/** Webhook events, subscriptions as rows, and which of them want an event. */

import type { Value } from "../../contract/types.js";
import type * as contract from "../../contract/webhooks.js";
import type { Transaction } from "../../log/state/commands.js";
import type { StateReader } from "../../log/state/projection.js";
import type { WebhookRow } from "../../store/schema/rows.js";
import { isPredicate, type KindedEvent, kindOf } from "../../verify/events/kinds.js";
import { normaliseContentHash } from "../../verify/events/manifest.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { type EndedReason, FINGERPRINT_MEMBERS, type WebhookEvent } from "../../verify/keys/contract.js";
import { namedAttestation } from "../events/attestations.js";
import { statusAt } from "../events/keys.js";
import { notifyOfWebhook } from "../requests/notifications.js";

// Webhook events: the log events that they correspond to, and the members of an entry that a delivery contains.

/** Payload members that a delivery contains: short ones that identify the subject. The others are in the entry. */
const TOLD = [
  "fingerprint",
  "pseudonym",
  "key_algorithm",
  "expiration_date",
  "attestation_id",
  "attestation_type",
  "signer_key_fingerprint",
  "document_hash",
  "manifest_hash",
  "document_title",
  "endorser_key_fingerprint",
  "endorsed_key_fingerprint",
  "offer_entry_id",
] as const;

/** The conditions of a subscription. All of them must be true. */
export type WebhookFilter = Pick<WebhookRow, "events" | "key_fingerprint" | "document_hash">;

/** The webhook event for an event of the log (docs/spec §16.1); undefined if there is none. */
export function webhookEvent(event: KindedEvent): WebhookEvent | undefined {
  const { webhook = null } = kindOf(event.event_type) ?? {};
  // A predicate URL alone does not make an event an attestation: imported history may contain anything.
  return webhook !== null && (!isPredicate(event.event_type) || namedAttestation(event)) ? webhook : undefined;
}

/** The members of a payload that a delivery contains. */
export function toldMembers(payload: JsonObject): JsonObject {
  return Object.fromEntries(TOLD.flatMap((name) => (payload[name] === undefined ? [] : [[name, payload[name]]])));
}

/** A subscription as its owner sees it: without the secret. */
export type Webhook = Value<typeof contract.Webhook>;

/** The active subscriptions, oldest first. This is cheap, because the rows are kept in memory. */
export const subscriptions = (state: StateReader) => state.range("webhooks", 0, Number.MAX_SAFE_INTEGER);

/** Whether a key may see and end a subscription. */
export const mayManage = (row: WebhookRow, fingerprint: string, operator: string): boolean =>
  row.owner_fingerprint === fingerprint || fingerprint === operator;

export function webhookView(id: number, row: WebhookRow): Webhook {
  const { url, events, key_fingerprint, document_hash, healthy, retry_count, created_at } = row;
  return { id, url, events, key_fingerprint, document_hash, active: true, healthy, retry_count, created_at };
}

/** Removes a subscription with its secret and its cursor. Its rows in the outbox are removed later, a few at a time. */
export function removeSubscription(transaction: Transaction, id: number): void {
  transaction.put("webhooks", id, undefined);
  if (transaction.get("webhookCursors", id)) transaction.put("webhookCursors", id, undefined);
}

/** Ends a subscription, and tells its owner. */
export function endSubscription(transaction: Transaction, id: number, row: WebhookRow, reason: EndedReason): void {
  removeSubscription(transaction, id);
  notifyOfWebhook(transaction, row.owner_fingerprint, { webhook_id: id, reason });
}

/** Whether the key that owns a subscription is no longer active. Only an operator key may have no row. */
export function hasOwnerEnded(transaction: Transaction, owner: string): boolean {
  const key = transaction.get("keys", owner);
  if (key) return statusAt(key, transaction.timestamp) !== "active";
  const rotations = transaction.range("operatorRotations", 0, Number.MAX_SAFE_INTEGER);
  return rotations.some(({ row }) => row.old_fingerprint === owner);
}

// Which subscriptions select an event, without a look at those that do not: anybody may make subscriptions, and each entry
// must cost the same however many there are.

/** Stands for "any" in a term. Neither events nor fingerprints nor hashes begin with it. */
const ANY = "*";

const termOf = (event: string, document: string, key: string): string => `${event} ${document} ${key}`;

/** The terms under which a subscription is filed. An event selects it if it has one of them; no event has two. */
function termsOfFilter({ events, key_fingerprint, document_hash }: WebhookFilter): string[] {
  const named = events.length ? events : [ANY];
  return named.map((event) => termOf(event, document_hash ?? ANY, key_fingerprint ?? ANY));
}

/** Subscriptions by what they select. */
export class Selection<S extends WebhookFilter> {
  readonly #filed = new Map<string, Set<S>>();
  /** Subscriptions with a document, and with a key: as long as there are none, no terms with one are looked up. */
  #withDocument = 0;
  #withKey = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(subscription: S): void {
    for (const term of termsOfFilter(subscription)) {
      const filed = this.#filed.get(term);
      if (filed) filed.add(subscription);
      else this.#filed.set(term, new Set([subscription]));
    }
    this.#count(subscription, 1);
  }

  /** Removes a subscription that was added. */
  remove(subscription: S): void {
    for (const term of termsOfFilter(subscription)) {
      const filed = this.#filed.get(term);
      filed?.delete(subscription);
      if (filed && !filed.size) this.#filed.delete(term);
    }
    this.#count(subscription, -1);
  }

  #count({ key_fingerprint, document_hash }: S, by: number): void {
    this.#size += by;
    if (document_hash !== null) this.#withDocument += by;
    if (key_fingerprint !== null) this.#withKey += by;
  }

  /**
   * Calls `found` for every subscription that selects an event. `found` may remove it.
   * @param payload of the event's entry
   */
  select(event: WebhookEvent, payload: JsonObject, found: (subscription: S) => void): void {
    const document = this.#withDocument ? normaliseContentHash(payload.document_hash) : undefined;
    const documents = document === undefined ? [ANY] : [ANY, document];
    const keys = new Set([ANY]);
    if (this.#withKey)
      for (const name of FINGERPRINT_MEMBERS) {
        const value = payload[name];
        if (typeof value === "string") keys.add(value);
      }
    for (const named of [ANY, event])
      for (const about of documents)
        for (const key of keys) {
          const filed = this.#filed.get(termOf(named, about, key));
          if (filed) for (const subscription of filed) found(subscription);
        }
  }
}
