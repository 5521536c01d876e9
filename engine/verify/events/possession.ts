/**
 * Proofs of possession of keys in the log (docs/spec §4.7). They follow from the entries alone.
 * Anybody can register any public key, so a registration without a signature says nothing about the holder.
 */
import { type KindedEvent, kindOf } from "./kinds.js";

/**
 * Whether an event that creates a key contains a signature by that key. The signature was checked when the event was
 * appended. It is over the values of the request, and the log has its text.
 */
export function showsPossession({ event_type, payload }: KindedEvent): boolean {
  if (event_type === "key_registration") return typeof payload.possession_signature === "string";
  return event_type === "key_succession" && typeof payload.new_key_signature === "string";
}

/**
 * The key that an event proves, because the event required its signature or session; undefined if it required none. For
 * the key that an event creates, see `showsPossession`. Imported history may contain any text here, so the result may
 * not be a fingerprint.
 */
export function actingKey({ event_type, payload }: KindedEvent): string | undefined {
  const actor = kindOf(event_type)?.actor ?? null;
  const fingerprint = actor === null ? undefined : payload[actor];
  return typeof fingerprint === "string" ? fingerprint : undefined;
}
