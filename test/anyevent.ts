/** Events for logs whose content does not matter. */
import { eventOf } from "#cairnlog/engine/verify/events/kinds.js";

/**
 * An event that the service's log may contain and that changes no row: an encrypted claim that nobody can look up.
 * @param more further members of the payload
 */
export function anyEvent(more: Readonly<Record<string, unknown>> = {}) {
  const claim = { commitment_alg: "", ephemeral_public_key: "", nonce: "", ciphertext: "", commitment: "" };
  return eventOf("encrypted_claim", { ...claim, lookup_key: "", ...more });
}

/**
 * An event that changes no row and shows `text` to readers: the answer to a request that does not exist.
 * @param more further members of the payload
 */
export function sayingEvent(text: string, more: Readonly<Record<string, unknown>> = {}) {
  const answer = { request_id: "none", responder_fingerprint: "nobody", attestation_id: null, reason: text };
  return eventOf("attestation_request_response", { ...answer, decision: "decline", ...more });
}
