/**
 * Endorsements in the log: the content of their events, the rows derived from them, and how the status of an
 * endorsement follows from its row and the time (docs/spec §9.1).
 */

import type * as contract from "../../contract/signing/endorsements.js";
import type { Value } from "../../contract/types.js";
import { type Clock, formatTimestamp, parseTimestamp } from "../../log/state/clock.js";
import type { DerivedWriter, LoggedEvent } from "../../log/state/projection.js";
import type { EndorsementRow, RevocationAlertRow } from "../../store/schema/rows.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import { isObject, type JsonObject } from "../../verify/json/shape.js";
import { ENDORSEMENT_CATEGORIES, type EndorsementStatus } from "../../verify/keys/contract.js";
import { canonicalTimestamp } from "../../verify/tree/entry.js";
import { isFingerprint } from "./keys.js";

const DATE = /^\d{4}-\d\d-\d\d$/;

/** The moment at which endorsements are judged. */
export interface EndorsementTime {
  /** Canonical form. */
  readonly now: string;
  /** Endorsements that were accepted at or before this moment are active. */
  readonly activatedUntil: string;
}

/** The current time of `clock`; accepted endorsements become active after `delaySeconds`. */
export const endorsementTime = (clock: Clock, delaySeconds: number): EndorsementTime =>
  timeAt(formatTimestamp(clock()), delaySeconds);

/** The `EndorsementTime` for a moment in canonical form. */
export const timeAt = (now: string, delaySeconds: number): EndorsementTime => ({
  now,
  activatedUntil: formatTimestamp(parseTimestamp(now) - delaySeconds * 1_000_000),
});

/** The status at `time`. No event makes an endorsement active or expired; if it was ended, that takes precedence. */
export function endorsementStatus(
  row: Pick<EndorsementRow, "accepted_at" | "valid_until" | "end_kind">,
  time: EndorsementTime,
): EndorsementStatus {
  if (row.end_kind !== null) return row.end_kind;
  if (row.valid_until !== null && hasPassed(row.valid_until, time.now)) return "expired";
  if (row.accepted_at === null) return "offered";
  return row.accepted_at <= time.activatedUntil ? "active" : "pending_activation";
}

/**
 * `value` in the form in which `valid_until` is stored: a date unchanged, a date-time in canonical form; undefined for
 * anything else.
 * @param read which spellings of a date-time count: those of an entry, or those of a request
 */
export function readValidUntil(value: unknown, read = canonicalTimestamp): string | undefined {
  if (typeof value !== "string") return undefined;
  if (!DATE.test(value)) return read(value);
  return canonicalTimestamp(`${value}T00:00:00Z`) && value;
}

/** Whether a validity ends at or before `now`. A date is over when its day is over, in UTC. */
export function hasPassed(validUntil: string, now: string): boolean {
  return DATE.test(validUntil) ? now.slice(0, validUntil.length) > validUntil : now >= validUntil;
}

/** Applies `endorsement_offer`. Imported history may contain anything: an invalid offer changes nothing. */
export function applyOffer(event: LoggedEvent, state: DerivedWriter): void {
  const { endorser_key_fingerprint: endorser, endorsed_key_fingerprint: endorsed, valid_until = null } = event.payload;
  const category = ENDORSEMENT_CATEGORIES.find((name) => name === event.payload.category);
  const validUntil = valid_until === null ? null : readValidUntil(valid_until);
  if (!isFingerprint(endorser) || !isFingerprint(endorsed) || endorser === endorsed) return;
  if (category === undefined || validUntil === undefined) return;
  const { institutional_metadata: metadata, external_identifiers: identifiers } = event.payload;
  putEndorsement(state, {
    offer_entry_id: event.id,
    endorser_fingerprint: endorser,
    endorsed_fingerprint: endorsed,
    category,
    valid_until: validUntil,
    institutional_metadata: isObject(metadata) ? canonicalJson(metadata) : null,
    external_identifiers: isIdentifierList(identifiers) ? canonicalJson(identifiers) : null,
    offered_at: event.timestamp,
    accepted_at: null,
    acceptance_entry_id: null,
    ended_at: null,
    end_kind: null,
    end_note: null,
  });
  const accepted = state.get("endorsementPairs", [endorser, endorsed, category])?.accepted ?? false;
  state.put("endorsementPairs", [endorser, endorsed, category], { offer_entry_id: event.id, accepted });
}

/** Applies `endorsement_acceptance`; it changes nothing unless the offer is open. */
export function applyAcceptance(event: LoggedEvent, state: DerivedWriter): void {
  const row = offerOf(event, state);
  if (!row || row.accepted_at !== null) return;
  putEndorsement(state, { ...row, accepted_at: event.timestamp, acceptance_entry_id: event.id });
  const pair = [row.endorser_fingerprint, row.endorsed_fingerprint, row.category] as [string, string, string];
  state.put("endorsementPairs", pair, { ...state.get("endorsementPairs", pair)!, accepted: true });
}

/** Applies `endorsement_withdrawal`. */
export function applyWithdrawal(event: LoggedEvent, state: DerivedWriter): void {
  end(event, offerOf(event, state), "withdrawn", state);
}

/** Applies `acceptance_revocation`; it changes nothing unless the offer was accepted. */
export function applyAcceptanceRevocation(event: LoggedEvent, state: DerivedWriter): void {
  const row = offerOf(event, state);
  end(event, row?.accepted_at === null ? undefined : row, "acceptance_revoked", state);
}

/** Applies `endorser_revocation_alert`. */
export function applyAlert(event: LoggedEvent, state: DerivedWriter): void {
  const { endorser_key_fingerprint: endorser, compromised_key_fingerprint: compromised } = event.payload;
  const { reason, evidence = null } = event.payload;
  if (!isFingerprint(endorser) || !isFingerprint(compromised) || typeof reason !== "string") return;
  if (evidence !== null && typeof evidence !== "string") return;
  const row = { endorser_fingerprint: endorser, reason, evidence, filed_at: event.timestamp };
  state.put("revocationAlerts", [compromised, event.id], row);
  state.put("newestAlerts", [compromised, endorser], { alert_entry_id: event.id });
}

export type RevocationAlert = Value<typeof contract.RevocationAlert>;

export const alertRecord = ([compromised, id]: [string, number], row: RevocationAlertRow): RevocationAlert => ({
  alert_entry_id: id,
  compromised_fingerprint: compromised,
  ...row,
});

/** The endorsement that a later event refers to, unless it has ended or belongs to other keys. */
function offerOf({ payload }: LoggedEvent, state: DerivedWriter): EndorsementRow | undefined {
  const { offer_entry_id: id, endorser_key_fingerprint: endorser, endorsed_key_fingerprint: endorsed } = payload;
  const row = Number.isSafeInteger(id) ? state.get("endorsements", id as number) : undefined;
  const isSame = row?.endorser_fingerprint === endorser && row?.endorsed_fingerprint === endorsed;
  return isSame && row?.end_kind === null ? row : undefined;
}

function end(
  event: LoggedEvent,
  row: EndorsementRow | undefined,
  kind: "withdrawn" | "acceptance_revoked",
  state: DerivedWriter,
): void {
  if (!row) return;
  const { note } = event.payload;
  const end_note = typeof note === "string" ? note : null;
  putEndorsement(state, { ...row, ended_at: event.timestamp, end_kind: kind, end_note });
}

/** Writes a row and its edges, which are copies of some of its members. */
function putEndorsement(state: DerivedWriter, row: EndorsementRow): void {
  const { offer_entry_id: id, endorser_fingerprint: endorser, endorsed_fingerprint: endorsed } = row;
  const { category, valid_until, offered_at, accepted_at, ended_at, end_kind } = row;
  const institution = institutionOf(row);
  const edge = { category, valid_until, offered_at, accepted_at, ended_at, end_kind, institution };
  state.put("endorsements", id, row);
  state.put("endorsementsByEndorser", [endorser, id], { other_fingerprint: endorsed, ...edge });
  state.put("endorsementsByEndorsed", [endorsed, id], { other_fingerprint: endorser, ...edge });
  if (accepted_at !== null) state.put("acceptedEndorsements", [endorsed, id], { other_fingerprint: endorser, ...edge });
}

function institutionOf({ institutional_metadata: text }: EndorsementRow): string | null {
  const name = text === null ? null : (JSON.parse(text) as JsonObject).name;
  return typeof name === "string" ? name : null;
}

function isIdentifierList(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((item) => isObject(item) && typeof item.type === "string" && typeof item.value === "string")
  );
}
