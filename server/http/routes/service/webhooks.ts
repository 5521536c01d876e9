/** Webhook subscriptions. */
import { Subscribe, Webhook, WebhookList, WebhookParams } from "../../../../engine/contract/webhooks.js";
import type { Served } from "../../../../engine/registry/registry.js";
import type { Webhook as WebhookView } from "../../../../engine/registry/webhooks/subscriptions.js";
import type { Gate } from "../../gate.js";
import { type Route, route } from "../../route/route.js";

export function webhookRoutes({ webhooks }: Pick<Served, "webhooks">, gate: Gate): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/v1/webhooks",
      summary: "Subscribe to events of the log",
      proving: "session",
      authorize: (asking) => gate.sessionKey(asking),
      body: Subscribe,
      answer: Webhook,
      refusals: [401, 403, 409],
      limit: "general",
      handle: ({ body, proof, request }) => webhooks.subscribe(body, proof.fingerprint, request.client),
    }),
    route({
      method: "GET",
      path: "/api/v1/webhooks",
      summary: "Active subscriptions of the session's key; the operator sees all",
      proving: "session",
      authorize: (asking) => gate.sessionKey(asking),
      answer: WebhookList,
      refusals: [401, 403],
      limit: "general",
      handle({ proof }) {
        const all = webhooks.list(proof.fingerprint);
        return proof.readOnly ? all.map(withoutPath) : all;
      },
    }),
    route({
      method: "DELETE",
      path: "/api/v1/webhooks/{webhook_id}",
      summary: "End a subscription; what was not delivered is not delivered any more",
      proving: "session",
      authorize: (asking) => gate.sessionKey(asking),
      params: WebhookParams,
      answer: Webhook,
      refusals: [401, 403, 404],
      limit: "general",
      handle: ({ params, proof }) => webhooks.deactivate(params.webhook_id, proof.fingerprint),
    }),
  ];
}

/** Path and query of a URL are often what lets its bearer write there, and a token that only reads is made to be passed on. */
const withoutPath = (webhook: WebhookView): WebhookView => ({ ...webhook, url: new URL(webhook.url).origin });
