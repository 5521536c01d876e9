/** Audit export: the entries that belong to a scope, and the flat record of an entry in CSV. */

import type { Criteria } from "../log/read/query.js";
import { typesInScope } from "../verify/events/kinds.js";
import { membersIn } from "../verify/events/withheld.js";
import { canonicalJson } from "../verify/json/canonical.js";
import { type AuditScope, FINGERPRINT_MEMBERS } from "../verify/keys/contract.js";
import type { Entry } from "../verify/tree/entry.js";
import { ATTESTATION_TERM } from "./events/attestations.js";

export type ExportScope = "all" | AuditScope;

/**
 * The search criteria for the entries of a scope. Attestations have no complete list of event types, since theirs are
 * predicates.
 */
export function scopeCriteria(scope: ExportScope): Criteria {
  if (scope === "all") return {};
  return scope === "attestations" ? { term: ATTESTATION_TERM } : { eventTypes: typesInScope(scope) };
}

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

/**
 * The cells of an entry, in the order of `EXPORT_COLUMNS`. `payload` is canonical JSON, from which its hash can be
 * computed; empty if the payload is withheld.
 */
export function exportRecord(entry: Entry): (string | number)[] {
  const payload = membersIn(entry);
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  const fingerprint = FINGERPRINT_MEMBERS.map((field) => payload[field]).find((value) => typeof value === "string");
  return [
    entry.id,
    entry.timestamp,
    entry.event_type,
    entry.entry_hash,
    entry.previous_hash ?? "",
    entry.chain_version ?? 1,
    text(fingerprint),
    text(payload.document_hash),
    entry.payload ? canonicalJson(payload) : "",
  ];
}
