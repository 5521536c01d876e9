/**
 * Attestations in the log: what their events hold and by which terms they are found again.
 */

import { hashedTerm, textPrefixTerm } from "../../store/postings/term.js";
import { POSTING } from "../../store/schema.js";
import type { AttestationEvent } from "../../verify/bundle/format.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { type Attestation, normaliseContentHash } from "../../verify/manifest.js";

/** Filed under it: every attestation. */
export const ATTESTATION_TERM = textPrefixTerm(POSTING.attestation, "");

interface Event {
  readonly event_type: string;
  readonly payload: JsonObject;
}

const URL_TYPE = /^https?:\/\//;
const COMPLETE = ["attestation_type", "document_hash", "signature_algorithm", "signature", "timestamp"] as const;

/** What every attestation event has, also one from imported history. */
export type NamedAttestation = JsonObject & {
  readonly attestation_id: string;
  readonly signer_key_fingerprint: string;
  readonly manifest_hash: string;
};

/** The payload of an attestation event; undefined for any other event, and for one that names no attestation. */
export function namedAttestation({ event_type, payload }: Event): NamedAttestation | undefined {
  const { attestation_id, signer_key_fingerprint, manifest_hash } = payload;
  return URL_TYPE.test(event_type) &&
    typeof attestation_id === "string" &&
    typeof signer_key_fingerprint === "string" &&
    typeof manifest_hash === "string"
    ? (payload as NamedAttestation)
    : undefined;
}

/** The same when it holds all that a receipt repeats: such an event answers for a submission that comes again. */
export function completeAttestation(event: Event): AttestationEvent | undefined {
  const payload = namedAttestation(event);
  return payload && COMPLETE.every((name) => typeof payload[name] === "string")
    ? (payload as unknown as AttestationEvent)
    : undefined;
}

/** The attestation that a complete event recorded, as it is answered and put into manifests. */
export function recordedAttestation(payload: AttestationEvent): Attestation {
  const attestation = {
    id: payload.attestation_id,
    type: payload.attestation_type,
    scope: { content_hash: payload.document_hash },
    signer_key_fingerprint: payload.signer_key_fingerprint,
    signature_algorithm: payload.signature_algorithm,
    signature: payload.signature,
    timestamp: payload.timestamp,
  };
  return typeof payload.intent_statement === "string"
    ? { ...attestation, intent_statement: payload.intent_statement }
    : attestation;
}

/**
 * The newest, since a command looks for the term that its event is then filed under: a function of what it was made of,
 * so no result depends on it. To hash it again took 1.5 µs of each attestation.
 */
let newest = { signer: "", manifestHash: "", eventType: "", term: "" };

/** What makes a submission the same one again. @param manifestHash hex, bare or with `sha256:` */
export function sameAttestationTerm(signer: string, manifestHash: string, eventType: string): string {
  if (newest.manifestHash === manifestHash && newest.signer === signer && newest.eventType === eventType && newest.term)
    return newest.term;
  const hash = normaliseContentHash(manifestHash) ?? manifestHash;
  const term = hashedTerm(POSTING.sameAttestation, `${signer}\n${hash}\n${eventType}`);
  newest = { signer, manifestHash, eventType, term };
  return term;
}

export function attestationIdTerm(id: string): string {
  return hashedTerm(POSTING.attestationId, id);
}
