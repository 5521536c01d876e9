/** Webhook subscriptions. */
import Type from "typebox";
import { WEBHOOK_EVENTS, WEBHOOK_SECRET, WEBHOOK_URL } from "../verify/keys/contract.js";
import { bounded, Fingerprint, nullable, optional, Timestamp } from "./common.js";

const WebhookEvent = Type.Enum(WEBHOOK_EVENTS);

const Events = Type.Array(WebhookEvent, { maxItems: 32, description: "Empty: all events." });

const DocumentHash = Type.String({ description: "`sha256:` and 64 hexadecimal characters; bare is accepted." });

export const Subscribe = Type.Object(
  {
    url: bounded(WEBHOOK_URL, "http: or https:, on the public internet, without user name and fragment."),
    events: optional(Events),
    key_fingerprint: optional(Fingerprint),
    document_hash: optional(DocumentHash),
    secret: optional(
      bounded(
        WEBHOOK_SECRET,
        "Never returned. Deliveries are then signed as in Standard Webhooks: with the bytes of the base64 after " +
          "`whsec_`, or else with the UTF-8 of the secret.",
      ),
    ),
  },
  { title: "Subscribe", description: "The URL, the selected events, and the secret that signs the deliveries." },
);

export const Webhook = Type.Object(
  {
    id: Type.Integer({ description: "Counted from 1." }),
    url: Type.String({ description: "As given; without its query for a token that only reads." }),
    events: Events,
    key_fingerprint: nullable(Fingerprint),
    document_hash: nullable(DocumentHash),
    active: Type.Boolean({ description: "False after it was ended." }),
    healthy: Type.Boolean({ description: "False after ten failures in a row, until the next success." }),
    retry_count: Type.Integer({ minimum: 0, description: "Number of failures since the last success." }),
    created_at: nullable(Timestamp),
  },
  { title: "Webhook" },
);

export const WebhookList = Type.Array(Webhook);

export const WebhookParams = Type.Object({
  webhook_id: Type.Integer({ minimum: 0, description: "`id` of a subscription." }),
});
