/**
 * What webhooks tell of: which events of the log they are, which of them a subscription selects, and what of an entry is
 * told.
 */
import { FINGERPRINT_FIELDS } from "../../log/write/projection.js";
import type { WebhookEvent, WebhookRow } from "../../store/schema.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { normaliseContentHash } from "../../verify/manifest.js";
import { namedAttestation } from "../attestations/events.js";
import { ACCEPTANCE_REVOCATION, ENDORSEMENT_ACCEPTANCE, ENDORSEMENT_WITHDRAWAL } from "../endorsements/events.js";
import { KEY_REGISTRATION, KEY_REVOCATION } from "../keys/events.js";

export const WEBHOOK_EVENTS = [
  "attestation.created",
  "key.registered",
  "key.revoked",
  "endorsement.created",
  "endorsement.revoked",
] as const satisfies readonly WebhookEvent[];

/** By event type in the log. Attestations have as many types as there are predicates. */
const BY_EVENT_TYPE: ReadonlyMap<string, WebhookEvent> = new Map([
  [KEY_REGISTRATION, "key.registered"],
  [KEY_REVOCATION, "key.revoked"],
  [ENDORSEMENT_ACCEPTANCE, "endorsement.created"],
  [ENDORSEMENT_WITHDRAWAL, "endorsement.revoked"],
  [ACCEPTANCE_REVOCATION, "endorsement.revoked"],
]);

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

interface Event {
  readonly event_type: string;
  readonly payload: JsonObject;
}

/** What a subscription asks for. All of it must hold. */
export type WebhookFilter = Pick<WebhookRow, "events" | "key_fingerprint" | "document_hash">;

/** The webhook event that an event of the log is (`api.md`, webhooks); undefined for one that nobody is told of. */
export function webhookEvent(event: Event): WebhookEvent | undefined {
  return BY_EVENT_TYPE.get(event.event_type) ?? (namedAttestation(event) && "attestation.created");
}

/** Whether a subscription with this filter is told of `event`, whose entry has this payload. */
export function selects(filter: WebhookFilter, event: WebhookEvent, payload: JsonObject): boolean {
  const { events, key_fingerprint: key, document_hash: document } = filter;
  if (events.length && !events.includes(event)) return false;
  if (key !== null && !FINGERPRINT_FIELDS.some((name) => payload[name] === key)) return false;
  return document === null || normaliseContentHash(payload.document_hash) === document;
}

/** The members of a payload that a delivery repeats. */
export function toldMembers(payload: JsonObject): JsonObject {
  return Object.fromEntries(TOLD.flatMap((name) => (payload[name] === undefined ? [] : [[name, payload[name]]])));
}
