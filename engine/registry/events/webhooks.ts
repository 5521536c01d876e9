/** Webhook events: the log events that they correspond to, and the members of an entry that a delivery contains. */

import type { WebhookRow } from "../../store/schema/rows.js";
import { isPredicate, type KindedEvent, kindOf } from "../../verify/events/kinds.js";
import type { JsonObject } from "../../verify/json/shape.js";
import type { WebhookEvent } from "../../verify/keys/contract.js";
import { namedAttestation } from "./attestations.js";

/** Payload members that a delivery contains: short ones that identify the subject. The others are in the entry. */
const TOLD = [
  "fingerprint",
  "pseudonym",
  "key_algorithm",
  "expiration_date",
  "attestation_id",
  "attestation_type",
  "signer_key_fingerprint",
  "document_hash",
  "manifest_hash",
  "document_title",
  "endorser_key_fingerprint",
  "endorsed_key_fingerprint",
  "offer_entry_id",
] as const;

/** The conditions of a subscription. All of them must be true. */
export type WebhookFilter = Pick<WebhookRow, "events" | "key_fingerprint" | "document_hash">;

/** The webhook event for an event of the log (docs/spec §16.1); undefined if there is none. */
export function webhookEvent(event: KindedEvent): WebhookEvent | undefined {
  const { webhook = null } = kindOf(event.event_type) ?? {};
  // A predicate URL alone does not make an event an attestation: imported history may contain anything.
  return webhook !== null && (!isPredicate(event.event_type) || namedAttestation(event)) ? webhook : undefined;
}

/** The members of a payload that a delivery contains. */
export function toldMembers(payload: JsonObject): JsonObject {
  return Object.fromEntries(TOLD.flatMap((name) => (payload[name] === undefined ? [] : [[name, payload[name]]])));
}
