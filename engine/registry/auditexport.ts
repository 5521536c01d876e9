/** Audit export: what belongs to a scope, and the flat record that an entry becomes in CSV. */

import type { Criteria } from "../log/read/query.js";
import { FINGERPRINT_FIELDS } from "../log/write/projection.js";
import type { Entry } from "../verify/entry.js";
import { canonicalJson } from "../verify/json/canonical.js";
import { ATTESTATION_TERM } from "./attestations/events.js";
import { ENCRYPTED_CLAIM } from "./claims/events.js";
import {
  ACCEPTANCE_REVOCATION,
  ENDORSEMENT_ACCEPTANCE,
  ENDORSEMENT_OFFER,
  ENDORSEMENT_WITHDRAWAL,
  REVOCATION_ALERT,
} from "./endorsements/events.js";
import { KEY_REGISTRATION, KEY_REVOCATION, KEY_SUCCESSION } from "./keys/events.js";
import { ATTESTATION_REQUEST, ATTESTATION_REQUEST_RESPONSE, REQUEST_POLICY } from "./requests/events.js";

/** Scope → what its entries have in common. */
export const EXPORT_SCOPES = {
  all: {},
  keys: { eventTypes: [KEY_REGISTRATION, KEY_SUCCESSION, KEY_REVOCATION] },
  // Their event types are predicates, of which there is no end.
  attestations: { term: ATTESTATION_TERM },
  endorsements: {
    eventTypes: [
      ENDORSEMENT_OFFER,
      ENDORSEMENT_ACCEPTANCE,
      ENDORSEMENT_WITHDRAWAL,
      ACCEPTANCE_REVOCATION,
      REVOCATION_ALERT,
    ],
  },
  claims: { eventTypes: [ENCRYPTED_CLAIM] },
  requests: { eventTypes: [ATTESTATION_REQUEST, ATTESTATION_REQUEST_RESPONSE, REQUEST_POLICY] },
} as const satisfies Readonly<Record<string, Criteria>>;
export type ExportScope = keyof typeof EXPORT_SCOPES;

export const EXPORT_COLUMNS = [
  "id",
  "timestamp",
  "event_type",
  "entry_hash",
  "previous_hash",
  "chain_version",
  "fingerprint",
  "document_hash",
  "payload",
] as const;

/** The cells of an entry, in the order of `EXPORT_COLUMNS`. `payload` is canonical JSON, from which its hash follows. */
export function exportRecord(entry: Entry): (string | number)[] {
  const { payload } = entry;
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  const fingerprint = FINGERPRINT_FIELDS.map((field) => payload[field]).find((value) => typeof value === "string");
  return [
    entry.id,
    entry.timestamp,
    entry.event_type,
    entry.entry_hash,
    entry.previous_hash ?? "",
    entry.chain_version ?? 1,
    text(fingerprint),
    text(payload.document_hash),
    canonicalJson(payload),
  ];
}
