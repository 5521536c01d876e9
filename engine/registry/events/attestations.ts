/** Attestations in the log: the content of their events, and the terms by which they are found again. */

import { hashedTerm, textPrefixTerm } from "../../store/postings/term.js";
import { POSTING } from "../../store/schema/schema.js";
import type { AttestationEvent } from "../../verify/bundle/format.js";
import { isHexHash } from "../../verify/bytes/encoding.js";
import { isPredicate, type KindedEvent } from "../../verify/events/kinds.js";
import { type Attestation, normaliseContentHash } from "../../verify/events/manifest.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { ecdsaIdentity } from "../../verify/keys/signature.js";
import { decodeSignature } from "../shared/input.js";

/** The term of every attestation. */
export const ATTESTATION_TERM = textPrefixTerm(POSTING.attestation, "");

const COMPLETE = ["attestation_type", "document_hash", "signature_algorithm", "signature", "timestamp"] as const;

/** The members that every attestation event has, including events of imported history. */
type NamedAttestation = JsonObject & {
  readonly attestation_id: string;
  readonly signer_key_fingerprint: string;
  readonly manifest_hash: string;
};

/** The payload of an attestation event; undefined for any other event, and for one that names no attestation. */
export function namedAttestation({ event_type, payload }: KindedEvent): NamedAttestation | undefined {
  const { attestation_id, signer_key_fingerprint, manifest_hash } = payload;
  return isPredicate(event_type) &&
    typeof attestation_id === "string" &&
    typeof signer_key_fingerprint === "string" &&
    typeof manifest_hash === "string"
    ? (payload as NamedAttestation)
    : undefined;
}

/**
 * The payload of an attestation event that has everything that a receipt repeats; undefined for any other event. Only
 * such an event can answer a repeated submission.
 */
export function completeAttestation(event: KindedEvent): AttestationEvent | undefined {
  const payload = namedAttestation(event);
  return payload && COMPLETE.every((name) => typeof payload[name] === "string")
    ? (payload as unknown as AttestationEvent)
    : undefined;
}

/** The attestation that a complete event recorded, as it is served and as it stands in manifests. */
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

/** The members of an attestation event that describe the submission. */
type Submitted = Pick<
  AttestationEvent,
  | "signer_key_fingerprint"
  | "manifest_hash"
  | "signature_algorithm"
  | "signature"
  | "intent_statement"
  | "signed_payload_hash"
>;

/** The terms by which a submission finds the attestations that it may repeat. */
interface SubmissionTerms {
  /** Signer, manifest, predicate and statement. Two submissions are the same if these are equal. */
  readonly submission: string;
  /** Signer, and the SHA-256 of the signed bytes. */
  readonly payload: string;
  /**
   * Signer and signature, in any form of the signature. An entry of format 2 or before does not have the hash of the
   * signed bytes. They may be the manifest without its attestations. But a stranger who submits such an attestation
   * again has only this signature, so it is found by the signature. Entries that name the hash are not filed under it.
   */
  readonly signature: string;
}

const signedTerm = (signer: string, what: string): string => hashedTerm(POSTING.signedPayload, `${signer}\n${what}`);

/**
 * The newest result. The terms by which a submission is looked up are among those of its event, which are made next. They
 * depend only on `of`.
 */
let newest: { readonly of: readonly unknown[]; readonly terms: SubmissionTerms } | undefined;

/** The terms of an attestation, or of a submission that may become one. @param eventType its predicate */
export function submissionTerms(eventType: string, submitted: Submitted): SubmissionTerms {
  const { signer_key_fingerprint: signer, manifest_hash, signature_algorithm, signature } = submitted;
  // Imported history may have a value of any type here.
  const statement = typeof submitted.intent_statement === "string" ? `=${submitted.intent_statement}` : "";
  const payloadHash = typeof submitted.signed_payload_hash === "string" ? submitted.signed_payload_hash : manifest_hash;
  const of = [eventType, signer, manifest_hash, signature_algorithm, signature, statement, payloadHash];
  if (newest?.of.every((part, i) => part === of[i])) return newest.terms;
  const manifest = bareHash(manifest_hash);
  const terms = {
    submission: hashedTerm(POSTING.submission, `${signer}\n${manifest}\n${eventType}\n${statement}`),
    payload: signedTerm(signer, bareHash(payloadHash)),
    signature: signedTerm(signer, `signature ${oneForm(signature_algorithm, signature)}`),
  };
  newest = { of, terms };
  return terms;
}

const bareHash = (hash: string): string =>
  isHexHash(hash) ? hash : (normaliseContentHash(hash)?.slice("sha256:".length) ?? hash);

/**
 * The text under which a signature is filed. Anybody can turn a P-256 signature into its other form; both forms get the
 * same text.
 */
function oneForm(algorithm: string, signature: string): string {
  const bytes = algorithm === "ecdsa-p256" ? decodeSignature(signature) : undefined;
  return (bytes && ecdsaIdentity(bytes)) ?? signature;
}

export function attestationIdTerm(id: string): string {
  return hashedTerm(POSTING.attestationId, id);
}
