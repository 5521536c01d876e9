/**
 * What webhooks tell of: which events of the log they are, which of them a subscription selects, and what of an entry is
 * told.
 */

import type { WebhookRow } from "../../store/rows.js";
import { FINGERPRINT_MEMBERS, type WebhookEvent } from "../../verify/contract.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { isPredicate, type KindedEvent, kindOf } from "../../verify/kinds.js";
import { normaliseContentHash } from "../../verify/manifest.js";
import { namedAttestation } from "../attestations/events.js";

/** Members of a payload that are told: short ones, which say what it is about. The entry has the rest. */
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

/** What a subscription asks for. All of it must hold. */
export type WebhookFilter = Pick<WebhookRow, "events" | "key_fingerprint" | "document_hash">;

/** The webhook event that an event of the log is (`api.md`, webhooks); undefined for one that nobody is told of. */
export function webhookEvent(event: KindedEvent): WebhookEvent | undefined {
  const { webhook = null } = kindOf(event.event_type) ?? {};
  // A predicate URL alone does not make an event an attestation: imported history may hold anything.
  return webhook !== null && (!isPredicate(event.event_type) || namedAttestation(event)) ? webhook : undefined;
}

/**
 * Makes the question whether a subscription selects `event`, whose entry has this payload. Every append asks it of up to a
 * thousand subscriptions, so what does not depend on them is prepared.
 */
export function selecting(event: WebhookEvent, payload: JsonObject): (filter: WebhookFilter) => boolean {
  const keys = FINGERPRINT_MEMBERS.map((name) => payload[name]).filter((value) => typeof value === "string");
  const document = normaliseContentHash(payload.document_hash);
  return ({ events, key_fingerprint, document_hash }) =>
    (document_hash === null || document_hash === document) &&
    (key_fingerprint === null || keys.includes(key_fingerprint)) &&
    (events.length === 0 || events.includes(event));
}

/** The members of a payload that a delivery repeats. */
export function toldMembers(payload: JsonObject): JsonObject {
  return Object.fromEntries(TOLD.flatMap((name) => (payload[name] === undefined ? [] : [[name, payload[name]]])));
}
