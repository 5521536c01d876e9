/** Events for logs whose content does not matter. */
import { eventOf } from "#cairnlog/engine/verify/kinds.js";

/**
 * An event that the service's log may hold and that changes no row: an encrypted claim that nobody can look up.
 * @param more further members of the payload
 */
export function anyEvent(more: Readonly<Record<string, unknown>> = {}) {
  const claim = { commitment_alg: "", ephemeral_public_key: "", nonce: "", ciphertext: "", commitment: "" };
  return eventOf("encrypted_claim", { ...claim, lookup_key: "", ...more });
}
