/**
 * A delivery as an HTTP request: the same id and body at every attempt, with a new timestamp and signature each time.
 */
import type { Delivery } from "../../engine/registry/webhooks/outbox.js";
import type { DeliveryContent, Endpoint } from "../../engine/registry/webhooks/webhooks.js";
import { VERSION } from "../process/version.js";
import { deliverySignature } from "./signature.js";

/** One HTTP request to an endpoint. The subscription's owner chose the URL. */
export interface DeliveryRequest {
  readonly url: string;
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * The request that delivers an entry to `endpoint` (docs/spec §16.2).
 * @param now microseconds since the epoch
 */
export function deliveryRequest(
  webhookId: number,
  { entry_id, event, created_at }: Pick<Delivery, "entry_id" | "event" | "created_at">,
  told: DeliveryContent,
  { url, secret }: Pick<Endpoint, "url" | "secret">,
  now: number,
): DeliveryRequest {
  // Receivers recognise repetitions by this id, so it depends only on the subscription and the entry.
  const id = `msg_${webhookId}_${entry_id}`;
  const timestamp = Math.floor(now / 1_000_000);
  const body = JSON.stringify({ id, type: event, created_at, data: told });
  const headers = {
    "content-type": "application/json",
    "user-agent": `cairnlog/${VERSION}`,
    "webhook-id": id,
    "webhook-timestamp": `${timestamp}`,
  };
  if (secret === null) return { url, headers, body };
  return { url, headers: { ...headers, "webhook-signature": deliverySignature(secret, id, timestamp, body) }, body };
}
