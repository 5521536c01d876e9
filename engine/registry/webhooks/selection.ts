/**
 * Which subscriptions select an event, without a look at those that do not: anybody may make subscriptions, and each entry
 * must cost the same however many there are.
 */

import { normaliseContentHash } from "../../verify/events/manifest.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { FINGERPRINT_MEMBERS, type WebhookEvent } from "../../verify/keys/contract.js";
import type { WebhookFilter } from "../events/webhooks.js";

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
