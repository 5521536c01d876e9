/** A key as the entries about it say: what a service keeps of it, worked out here. */

import type { KindedEvent } from "../../../engine/verify/events/kinds.js";
import { showsPossession } from "../../../engine/verify/events/possession.js";
import { eventIn } from "../../../engine/verify/events/withheld.js";
import { canonicalTimestamp, type Entry } from "../../../engine/verify/index.js";
import type { KeyDetail } from "../base/types.js";

/** A key of a published log. Whether it has signed something else than its own registration, the index does not say. */
export type PublishedKey = Omit<KeyDetail, "proven">;

/**
 * Undefined if no entry records the key. What strangers recorded gives way to the first entry that the key has signed.
 * @param entries about the key, oldest first
 */
export function keyFrom(fingerprint: string, entries: readonly Entry[]): KeyDetail | undefined {
  let key: KeyDetail | undefined;
  /** Both keys have signed a rotation, and it stays what it is whoever registers them. */
  let handed: Pick<KeyDetail, "predecessor_fingerprint" | "predecessor_confirmed"> | undefined;
  for (const entry of entries.map(eventIn)) {
    const { event_type, payload } = entry;
    const isOfKeys = event_type === "key_registration" || event_type === "key_succession";
    if (isOfKeys && payload.fingerprint === fingerprint) {
      const created = keyOf(fingerprint, entry);
      if (created && (!key || (created.named && !key.named && key.status === "active"))) key = created;
    } else if (key && event_type === "key_revocation") key = { ...key, status: "revoked" };
    else if (payload.old_fingerprint !== fingerprint) {
      if (event_type === "operator_key_rotation")
        handed = { predecessor_fingerprint: String(payload.old_fingerprint), predecessor_confirmed: true };
    } else if (key)
      key = {
        ...{ ...key, status: "succeeded", successor_fingerprint: String(payload.fingerprint) },
        successor_confirmed: event_type === "operator_key_rotation" || showsPossession(entry),
      };
  }
  if (key?.predecessor_fingerprint === null) key = { ...key, ...handed };
  const isExpired = key?.status === "active" && key.expires_at !== null && Date.parse(key.expires_at) <= Date.now();
  return key && isExpired ? { ...key, status: "expired" } : key;
}

function keyOf(fingerprint: string, entry: Entry & KindedEvent): KeyDetail | undefined {
  const { public_key, pseudonym, key_algorithm, expiration_date, old_fingerprint } = entry.payload;
  if (typeof public_key !== "string" || typeof pseudonym !== "string" || typeof key_algorithm !== "string")
    return undefined;
  const named = showsPossession(entry);
  const predecessor = typeof old_fingerprint === "string" ? old_fingerprint : null;
  return {
    ...{ fingerprint, public_key, pseudonym, named, proven: named },
    algorithm: key_algorithm as KeyDetail["algorithm"],
    status: "active",
    registered_at: entry.timestamp,
    expires_at: canonicalTimestamp(expiration_date) ?? null,
    log_entry_id: entry.id,
    ...{ successor_fingerprint: null, successor_confirmed: null, predecessor_fingerprint: predecessor },
    predecessor_confirmed: predecessor === null ? null : named,
  };
}
