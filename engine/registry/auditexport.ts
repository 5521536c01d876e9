/** Audit export: the entries that belong to a scope, and the flat record of an entry in CSV. */

import { stringify } from "csv-stringify/sync";
import type { Log } from "../log/log.js";
import type { Criteria } from "../log/read/query.js";
import { isPredicate, typesInScope } from "../verify/events/kinds.js";
import { membersIn } from "../verify/events/withheld.js";
import { canonicalJson } from "../verify/json/canonical.js";
import { type AuditScope, FINGERPRINT_MEMBERS } from "../verify/keys/contract.js";
import type { Entry } from "../verify/tree/entry.js";
import { ATTESTATION_TERM } from "./events/attestations.js";

export type ExportScope = "all" | AuditScope;

/**
 * The search criteria for the entries of a scope. Attestations have no complete list of event types, since theirs are
 * predicates; those that the operator withholds have no term of their payload any more, but are attestations by their type.
 */
export function scopeCriteria(scope: ExportScope, log: Pick<Log, "withheldLeaves" | "entryAt">): Criteria {
  if (scope === "all") return {};
  if (scope !== "attestations") return { eventTypes: typesInScope(scope) };
  return { term: ATTESTATION_TERM, orLeaves: withheldAttestations(log) };
}

/** By the withheld leaves of a log, which are another array when there is one more: those that are attestations. */
const attestations = new WeakMap<readonly number[], readonly number[]>();

/** Reads their types once: there may be thousands, and anybody may ask. */
function withheldAttestations(log: Pick<Log, "withheldLeaves" | "entryAt">): readonly number[] {
  const { withheldLeaves } = log;
  const known = attestations.get(withheldLeaves);
  if (known) return known;
  const found = withheldLeaves.filter((leafIndex) => isPredicate(log.entryAt(leafIndex)!.event_type));
  attestations.set(withheldLeaves, found);
  return found;
}

const EXPORT_COLUMNS = [
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
function exportRecord(entry: Entry): (string | number)[] {
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

// Entries as CSV (RFC 4180). Whoever submits an entry chooses its texts, so no cell may become a formula in a spreadsheet.
//
// A spreadsheet in some countries splits lines at `;`, others are told to split at tabs. They then find quotation marks in the
// middle of a cell, which protect nothing, so each `;`, tab or line end inside a cell may begin a cell there.

/** `escape_formulas` puts an apostrophe in front of a formula at the beginning of a cell. */
const FORMAT = { record_delimiter: "windows", escape_formulas: true } as const;

/** A formula behind a place where a cell may begin. Its last four signs are those of full width. */
const INNER_FORMULA = /([;\t\r\n][ "]*)([=+\-@\uff0b\uff0d\uff1d\uff20])/g;

export const csvHeader = (): string => stringify([[...EXPORT_COLUMNS]], FORMAT);

/** One line, with its line end. */
export function csvLine(entry: Entry): string {
  const cells = exportRecord(entry);
  const payload = cells.pop() as string;
  return stringify([[...cells.map(neutral), neutralJson(payload)]], FORMAT);
}

/** An apostrophe makes text of what would be a formula. */
const neutral = (cell: string | number): string | number =>
  typeof cell === "string" ? cell.replace(INNER_FORMULA, "$1'$2") : cell;

/** In JSON the sign becomes an escape, so the value stays the same. Such a place is always inside a string. */
const neutralJson = (json: string): string =>
  json.replace(
    INNER_FORMULA,
    (_, before: string, sign: string) => `${before}\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
