/** Webhook subscriptions of the session's key. */
import * as wire from "../wire/webhooks.js";
import type { Http } from "./http.js";
import type { Authority } from "./session.js";
import type { Subscribe, Webhook } from "./types.js";

export class WebhooksClient {
  readonly #http: Http;
  readonly #authority: Authority;

  constructor(http: Http, authority: Authority) {
    this.#http = http;
    this.#authority = authority;
  }

  /** Subscribes to events. @throws ClientError */
  create(subscription: Subscribe): Promise<Webhook> {
    return this.#authority.withSession((headers) => this.#http.post(wire.Webhook, "/webhooks", subscription, headers));
  }

  /** Active subscriptions; the operator's session sees everybody's. @throws ClientError */
  list(): Promise<Webhook[]> {
    return this.#authority.withSession((headers) => this.#http.get(wire.WebhookList, "/webhooks", {}, headers));
  }

  /** Ends a subscription; what was not delivered is not delivered any more. @throws ClientError */
  remove(id: number): Promise<Webhook> {
    return this.#authority.withSession((headers) => this.#http.delete(wire.Webhook, `/webhooks/${id}`, headers));
  }
}
