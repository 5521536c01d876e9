/**
 * Who has shown to hold a key (`api.md`, Keys, "Possession wins"). It follows from the entries of a log alone: anybody can
 * register any public key, so a registration by itself says nothing about its holder.
 */
import { type KindedEvent, kindOf } from "../kinds.js";

/**
 * Whether an event that creates a key carries a signature of that key. The signature was checked when the event was
 * appended; the log has its text, over what the request said.
 */
export function showsPossession({ event_type, payload }: KindedEvent): boolean {
  if (event_type === "key_registration") return typeof payload.possession_signature === "string";
  return event_type === "key_succession" && typeof payload.new_key_signature === "string";
}

/**
 * The key that an event proves because the event took its signature or session; undefined when it took none. What the
 * event creates is another matter: see `showsPossession`. Imported history may hold anything, so the text may be no
 * fingerprint.
 */
export function actingKey({ event_type, payload }: KindedEvent): string | undefined {
  const actor = kindOf(event_type)?.actor ?? null;
  const fingerprint = actor === null ? undefined : payload[actor];
  return typeof fingerprint === "string" ? fingerprint : undefined;
}
