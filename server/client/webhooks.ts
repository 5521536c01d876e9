/** Webhook subscriptions of the session's key. */
import * as wire from "../../engine/contract/webhooks.js";
import { asLogged, confirmed } from "./base/compare.js";
import { ClientError } from "./base/error.js";
import type { Subscribe, Webhook } from "./base/types.js";
import { Area } from "./log/area.js";

export class WebhooksClient extends Area {
  /** Subscribes to events. @throws ClientError */
  async create(subscription: Subscribe): Promise<Webhook> {
    const webhook = await this.auth.withSession((headers) =>
      this.http.post(wire.Webhook, "/webhooks", subscription, headers),
    );
    const { url, events, key_fingerprint, document_hash } = subscription;
    const asked = {
      url,
      events: [...new Set(events ?? [])],
      key_fingerprint: key_fingerprint == null ? null : asLogged(key_fingerprint),
      document_hash: document_hash == null ? null : asLogged(document_hash),
    };
    return confirmed(webhook, { ...asked, active: true, healthy: true, retry_count: 0 }, "The subscription");
  }

  /** Active subscriptions of the session's key. The operator's session sees those of all keys. @throws ClientError */
  async list(): Promise<Webhook[]> {
    const webhooks = await this.auth.withSession((headers) =>
      this.http.get(wire.WebhookList, "/webhooks", {}, headers),
    );
    if (new Set(webhooks.map(({ id }) => id)).size !== webhooks.length)
      throw new ClientError("malformed-answer", "The list of subscriptions has one of them twice.");
    return webhooks.map((webhook) => confirmed(webhook, { active: true }, "A subscription of the list"));
  }

  /** Ends a subscription. Waiting deliveries are not sent. @throws ClientError */
  async remove(id: number): Promise<Webhook> {
    const webhook = await this.auth.withSession((headers) =>
      this.http.delete(wire.Webhook, `/webhooks/${id}`, headers),
    );
    return confirmed(webhook, { id, active: false }, "The subscription");
  }
}
