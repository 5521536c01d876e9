/**
 * What webhooks tell of: which events of the log they are, which of them a subscription selects, and what of an entry is
 * told.
 */

import type { WebhookRow } from "../../store/schema.js";
import type { WebhookEvent } from "../../verify/contract.js";
import { FINGERPRINT_MEMBERS } from "../../verify/contract.js";
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

/** Whether a subscription with this filter is told of `event`, whose entry has this payload. */
export function selects(filter: WebhookFilter, event: WebhookEvent, payload: JsonObject): boolean {
  const { events, key_fingerprint: key, document_hash: document } = filter;
  if (events.length && !events.includes(event)) return false;
  if (key !== null && !FINGERPRINT_MEMBERS.some((name) => payload[name] === key)) return false;
  return document === null || normaliseContentHash(payload.document_hash) === document;
}

/** The members of a payload that a delivery repeats. */
export function toldMembers(payload: JsonObject): JsonObject {
  return Object.fromEntries(TOLD.flatMap((name) => (payload[name] === undefined ? [] : [[name, payload[name]]])));
}
