/**
 * What events mean to the registry: the rows they change and the terms they are found by. Runs for live events, for
 * imported history and for every rebuild, so it is total: an event that makes no sense changes nothing.
 */
import type { LoggedEvent, Projection, StateWriter } from "../log/write/projection.js";
import { gramTerms, textPrefixTerm } from "../store/postings/term.js";
import { POSTING } from "../store/schema.js";
import {
  ATTESTATION_TERM,
  attestationIdTerm,
  completeAttestation,
  namedAttestation,
  sameAttestationTerm,
} from "./attestations/events.js";
import { claimLookupKey, claimLookupTerm } from "./claims/events.js";
import {
  ACCEPTANCE_REVOCATION,
  applyAcceptance,
  applyAcceptanceRevocation,
  applyAlert,
  applyOffer,
  applyWithdrawal,
  ENDORSEMENT_ACCEPTANCE,
  ENDORSEMENT_OFFER,
  ENDORSEMENT_WITHDRAWAL,
  REVOCATION_ALERT,
} from "./endorsements/events.js";
import { createdKey, isFingerprint, KEY_REGISTRATION, KEY_REVOCATION, KEY_SUCCESSION, newRow } from "./keys/events.js";
import { foldPseudonym } from "./keys/pseudonym.js";
import { APPLY_REQUESTS } from "./requests/events.js";
import { tellSubscribers } from "./webhooks/subscriptions.js";

/** Filed under it: every entry that created a key, in order. */
export const KEY_CREATED_TERM = textPrefixTerm(POSTING.keyCreated, "");

type Apply = (event: LoggedEvent, state: StateWriter) => void;

const APPLY: ReadonlyMap<string, Apply> = new Map([
  [KEY_REGISTRATION, applyRegistration],
  [KEY_SUCCESSION, applySuccession],
  [KEY_REVOCATION, applyRevocation],
  [ENDORSEMENT_OFFER, applyOffer],
  [ENDORSEMENT_ACCEPTANCE, applyAcceptance],
  [ENDORSEMENT_WITHDRAWAL, applyWithdrawal],
  [ACCEPTANCE_REVOCATION, applyAcceptanceRevocation],
  [REVOCATION_ALERT, applyAlert],
  ...APPLY_REQUESTS,
]);

export const projection: Projection = {
  apply(event, state) {
    APPLY.get(event.event_type)?.(event, state);
  },
  addTerms(event, terms) {
    const created = createdKey(event);
    if (created) {
      terms.add(KEY_CREATED_TERM, event.leafIndex);
      for (const term of gramTerms(foldPseudonym(created.pseudonym))) terms.add(term, event.leafIndex);
    }
    const attestation = namedAttestation(event);
    if (attestation) {
      terms.add(ATTESTATION_TERM, event.leafIndex);
      terms.add(attestationIdTerm(attestation.attestation_id), event.leafIndex);
    }
    const complete = completeAttestation(event);
    if (complete) {
      const { signer_key_fingerprint: signer, manifest_hash } = complete;
      terms.add(sameAttestationTerm(signer, manifest_hash, event.event_type), event.leafIndex);
    }
    const lookupKey = claimLookupKey(event);
    if (lookupKey !== undefined) terms.add(claimLookupTerm(lookupKey), event.leafIndex);
  },
  onAppend: tellSubscribers,
};

function applyRegistration(event: LoggedEvent, state: StateWriter): void {
  const created = createdKey(event);
  if (!created || state.get("keys", created.key.fingerprint)) return;
  state.put("keys", created.key.fingerprint, newRow(created, event, null));
}

function applySuccession(event: LoggedEvent, state: StateWriter): void {
  const { old_fingerprint } = event.payload;
  const created = createdKey(event);
  const old = isFingerprint(old_fingerprint) ? state.get("keys", old_fingerprint) : undefined;
  if (!created || old?.status !== "active" || state.get("keys", created.key.fingerprint)) return;
  const { fingerprint } = created.key;
  const ended = { status: "succeeded", successor_fingerprint: fingerprint, ended_at: event.timestamp } as const;
  state.put("keys", old.fingerprint, { ...old, ...ended });
  state.put("keys", fingerprint, newRow(created, event, old.fingerprint));
}

function applyRevocation(event: LoggedEvent, state: StateWriter): void {
  const { fingerprint } = event.payload;
  const row = isFingerprint(fingerprint) ? state.get("keys", fingerprint) : undefined;
  if (row?.status === "active")
    state.put("keys", row.fingerprint, { ...row, status: "revoked", ended_at: event.timestamp });
}
