/**
 * The meaning of events for the registry: the rows that they change, and the terms by which they are found. This runs
 * for live events, for imported history and for every rebuild. It therefore never throws: an invalid event changes
 * nothing.
 */
import type { DerivedWriter, LoggedEvent, Projection } from "../../log/state/projection.js";
import { gramTerms, hashedTerm, textPrefixTerm } from "../../store/postings/term.js";
import type { TermTable } from "../../store/postings/termtable.js";
import { POSTING } from "../../store/schema/schema.js";
import { type EventType, isEventType, isPredicate } from "../../verify/events/kinds.js";
import { actingKey } from "../../verify/events/possession.js";
import { withholdingIn } from "../../verify/events/withheld.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { WITHHELD_NAME } from "../../verify/tree/entry.js";
import {
  ATTESTATION_TERM,
  attestationIdTerm,
  completeAttestation,
  namedAttestation,
  submissionTerms,
} from "./attestations.js";
import { applyAcceptance, applyAcceptanceRevocation, applyAlert, applyOffer, applyWithdrawal } from "./endorsements.js";
import { createdKey, foldPseudonym, givesWay, isFingerprint, newRow } from "./keys.js";
import { applyPolicy, applyRequest, applyResponse } from "./requests.js";

/** The term of every entry that created a key, in order. */
export const KEY_CREATED_TERM = textPrefixTerm(POSTING.keyCreated, "");

/** The effect of one kind of event on the registry. */
interface Meaning {
  /** Writes the rows that follow from the event. */
  readonly apply?: (event: LoggedEvent, state: DerivedWriter) => void;
  /** Adds the terms by which the registry finds the event again. */
  readonly addTerms?: (event: LoggedEvent, terms: Pick<TermTable, "add">) => void;
}

/** Every kind is listed, including kinds without an effect. */
const MEANINGS: Readonly<Record<EventType, Meaning>> = {
  key_registration: { apply: applyRegistration, addTerms: addKeyTerms },
  key_succession: { apply: applySuccession, addTerms: addKeyTerms },
  key_revocation: { apply: applyRevocation },
  operator_key_rotation: { apply: applyOperatorRotation },
  log_frozen: {},
  log_continues: {},
  payload_withheld: { apply: applyWithheldName },
  endorsement_offer: { apply: applyOffer },
  endorsement_acceptance: { apply: applyAcceptance },
  endorsement_withdrawal: { apply: applyWithdrawal },
  acceptance_revocation: { apply: applyAcceptanceRevocation },
  endorser_revocation_alert: { apply: applyAlert },
  attestation_request: { apply: applyRequest },
  attestation_request_response: { apply: applyResponse },
  request_policy: { apply: applyPolicy },
  encrypted_claim: { addTerms: addClaimTerms },
};
const ATTESTATION_MEANING: Meaning = { addTerms: addAttestationTerms };

function meaningOf({ event_type }: LoggedEvent): Meaning | undefined {
  if (isEventType(event_type)) return MEANINGS[event_type];
  return isPredicate(event_type) ? ATTESTATION_MEANING : undefined;
}

export const projection: Projection = {
  checksEvents: true,
  apply(event, state) {
    proveActor(event, state);
    meaningOf(event)?.apply?.(event, state);
  },
  addTerms(event, terms) {
    meaningOf(event)?.addTerms?.(event, terms);
  },
};

function addKeyTerms(event: LoggedEvent, terms: Pick<TermTable, "add">): void {
  const created = createdKey(event);
  if (!created) return;
  terms.add(KEY_CREATED_TERM, event.leafIndex);
  for (const term of gramTerms(foldPseudonym(created.pseudonym))) terms.add(term, event.leafIndex);
}

function addAttestationTerms(event: LoggedEvent, terms: Pick<TermTable, "add">): void {
  const attestation = namedAttestation(event);
  if (!attestation) return;
  terms.add(ATTESTATION_TERM, event.leafIndex);
  terms.add(attestationIdTerm(attestation.attestation_id), event.leafIndex);
  const complete = completeAttestation(event);
  if (!complete) return;
  const filed = submissionTerms(event.event_type, complete);
  for (const term of [filed.submission, filed.payload]) terms.add(term, event.leafIndex);
  if (complete.signed_payload_hash === undefined) terms.add(filed.signature, event.leafIndex);
}

function addClaimTerms(event: LoggedEvent, terms: Pick<TermTable, "add">): void {
  const lookupKey = claimLookupKey(event);
  if (lookupKey !== undefined) terms.add(claimLookupTerm(lookupKey), event.leafIndex);
}

/**
 * Marks the acting key as proven, since the actor has proven possession of it. Only the operator key may act without a
 * row; there is then nothing to mark.
 */
function proveActor(event: LoggedEvent, state: DerivedWriter): void {
  const fingerprint = actingKey(event);
  const row = isFingerprint(fingerprint) ? state.get("keys", fingerprint) : undefined;
  if (row && !row.proven) state.put("keys", row.fingerprint, { ...row, proven: true });
}

function applyRegistration(event: LoggedEvent, state: DerivedWriter): void {
  const created = createdKey(event);
  if (!created) return;
  const { fingerprint } = created.key;
  const known = state.get("keys", fingerprint);
  if (givesWay(known, created)) state.put("keys", fingerprint, newRow(created, event, null, known));
}

function applySuccession(event: LoggedEvent, state: DerivedWriter): void {
  const { old_fingerprint } = event.payload;
  const created = createdKey(event);
  const old = isFingerprint(old_fingerprint) ? state.get("keys", old_fingerprint) : undefined;
  if (!created || old?.status !== "active" || created.key.fingerprint === old.fingerprint) return;
  const { fingerprint } = created.key;
  const known = state.get("keys", fingerprint);
  if (!givesWay(known, created)) return;
  const ended = { status: "succeeded", successor_fingerprint: fingerprint, ended_at: event.timestamp } as const;
  state.put("keys", old.fingerprint, { ...old, ...ended });
  state.put("keys", fingerprint, newRow(created, event, old.fingerprint, known));
}

/** A key whose name is withheld has none any more, if it has the name by that entry. */
function applyWithheldName(event: LoggedEvent, state: DerivedWriter): void {
  const { entry_id, fingerprint } = withholdingIn(event) ?? {};
  const row = isFingerprint(fingerprint) ? state.get("keys", fingerprint) : undefined;
  if (row && row.log_entry_id === entry_id) state.put("keys", row.fingerprint, { ...row, pseudonym: WITHHELD_NAME });
}

/** An operator key that is registered like any other ends with its term. The new one is what it was before. */
function applyOperatorRotation(event: LoggedEvent, state: DerivedWriter): void {
  const { old_fingerprint, fingerprint } = event.payload;
  const old = isFingerprint(old_fingerprint) ? state.get("keys", old_fingerprint) : undefined;
  if (old?.status !== "active" || !isFingerprint(fingerprint) || fingerprint === old_fingerprint) return;
  const ended = { status: "succeeded", successor_fingerprint: fingerprint, ended_at: event.timestamp } as const;
  state.put("keys", old.fingerprint, { ...old, ...ended });
}

function applyRevocation(event: LoggedEvent, state: DerivedWriter): void {
  const { fingerprint } = event.payload;
  const row = isFingerprint(fingerprint) ? state.get("keys", fingerprint) : undefined;
  if (row?.status === "active")
    state.put("keys", row.fingerprint, { ...row, status: "revoked", ended_at: event.timestamp });
}

export const ENCRYPTED_CLAIM = "encrypted_claim";

/** The term of every claim with this lookup key, in either case of hex. */
export function claimLookupTerm(lookupKey: string): string {
  return hashedTerm(POSTING.claimLookup, lookupKey.toLowerCase());
}

/** The lookup key of a claim; undefined for any other event, and for a claim of imported history that has none. */
function claimLookupKey(event: { readonly event_type: string; readonly payload: JsonObject }): string | undefined {
  const { lookup_key } = event.payload;
  return event.event_type === ENCRYPTED_CLAIM && typeof lookup_key === "string" ? lookup_key : undefined;
}
