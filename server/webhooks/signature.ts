/**
 * Signatures of deliveries in the form of Standard Webhooks: HMAC-SHA256 over id, timestamp and body. Both sides are
 * here, so that authors of receivers can compare theirs with ours.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { CairnlogError } from "../../engine/base/error.js";
import { webhookKey } from "../../engine/registry/webhooks/input.js";

/**
 * Maximum difference between a delivery's timestamp and now, in seconds, so that a recorded delivery cannot be replayed
 * later.
 */
const TOLERANCE_S = 300;
const VERSION = "v1";
const DECIMAL = /^\d{1,15}$/;

/** The headers as a receiver gets them; each may be missing. */
interface SignedHeaders {
  readonly id: string | undefined;
  readonly timestamp: string | undefined;
  /** One or more signatures, separated by spaces. */
  readonly signature: string | undefined;
}

/**
 * The value of `webhook-signature` (docs/spec §16.2).
 * @param secret as it was registered; `webhookKey` derives the HMAC key
 * @param timestamp seconds since the epoch
 * @throws CairnlogError `invalid-input` for a secret from which no key can be derived
 */
export function deliverySignature(secret: string, id: string, timestamp: number, body: string | Uint8Array): string {
  const key = webhookKey(secret);
  if (!key?.length) throw new CairnlogError("invalid-input", "After whsec_ a secret must be base64.");
  return `${VERSION},${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
}

/**
 * Checks a delivery, which may come from an attacker.
 * @param body as received, byte for byte
 * @param now seconds since the epoch
 * @returns undefined if it is valid, otherwise a sentence with the reason
 * @throws CairnlogError `invalid-input` for a secret from which no key can be derived
 */
export function deliveryFault(
  secret: string,
  { id, timestamp, signature }: SignedHeaders,
  body: Uint8Array,
  now: number,
): string | undefined {
  if (!id || !timestamp) return "The header webhook-id or webhook-timestamp is missing.";
  if (!signature) return "The delivery is not signed: the header webhook-signature is missing.";
  if (!DECIMAL.test(timestamp)) return "The header webhook-timestamp is no whole number of seconds.";
  if (Math.abs(now - Number(timestamp)) > TOLERANCE_S) return "The timestamp is more than five minutes from now.";
  const expected = Buffer.from(deliverySignature(secret, id, Number(timestamp), body));
  const isRight = signature.split(" ").some((text) => {
    const given = Buffer.from(text);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
  return isRight ? undefined : "The signature does not fit the id, the timestamp, the body and the secret.";
}
