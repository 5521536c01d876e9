/** The command that records an attestation. The caller has verified the signature. */
import { CairnlogError } from "../../error.js";
import { define, type Transaction } from "../../log/write/commands.js";
import type { KeyRow } from "../../store/rows.js";
import { appendRegistration, type PlainKey } from "../keys/commands.js";
import { requireActive } from "../keys/status.js";
import { submissionTerms } from "./events.js";

/** A submission with a valid signature. */
export interface SignedAttestation {
  readonly key: PlainKey;
  /** Used if the key is not registered yet. */
  readonly pseudonym: string;
  readonly event_type: string;
  readonly attestation_id: string;
  readonly attestation_type: string;
  readonly document_hash: string;
  readonly document_title: string;
  readonly intent_statement: string | null;
  /** Bare hex. */
  readonly manifest_hash: string;
  /** Bare hex hash of the signed bytes. Null if the signature is over the manifest as it was submitted. */
  readonly signed_payload_hash: string | null;
  /** Base64, as it was sent. */
  readonly signature: string;
  readonly tags: readonly string[];
  /**
   * Whether type, statement and earlier attestations may differ from those of an attestation with the same signed
   * bytes. True if the submitter holds the key, or if the signature covers all of them. Anybody else may have taken the
   * signature from the log.
   */
  readonly may_differ: boolean;
  /**
   * Whether the entry under this submission's term is known to belong to another one. A term is only half of a SHA-256,
   * so two submissions may share it.
   */
  readonly is_another: boolean;
}

/** The signer's name, and the leaf index of an entry that seems to be the same submission; without one, it was appended. */
export interface Recorded {
  readonly pseudonym: string;
  readonly earlier?: number;
}

/** The event of a submission that is recorded at this moment. */
export const attestationEvent = (signed: SignedAttestation, timestamp: string) => ({
  // The members are in the order of canonical JSON, so that it has nothing to sort.
  attestation_id: signed.attestation_id,
  attestation_type: signed.attestation_type,
  document_hash: signed.document_hash,
  document_title: signed.document_title,
  intent_statement: signed.intent_statement,
  manifest_hash: signed.manifest_hash,
  signature: signed.signature,
  signature_algorithm: signed.key.algorithm,
  ...(signed.signed_payload_hash === null ? {} : { signed_payload_hash: signed.signed_payload_hash }),
  signer_key_fingerprint: signed.key.fingerprint,
  tags: signed.tags,
  timestamp,
});

/**
 * Registers the key first when it is new.
 * @throws CairnlogError `key-not-active`; `proof-required` if the signature has made another attestation before, and
 *   the submission does not show that it comes from the signer
 */
export const recordAttestation = define(
  "attestation.record",
  (transaction: Transaction, signed: SignedAttestation): Recorded => {
    const { key, event_type } = signed;
    const row: KeyRow | undefined = transaction.get("keys", key.fingerprint);
    const pseudonym = row?.pseudonym ?? signed.pseudonym;
    const payload = attestationEvent(signed, transaction.timestamp);
    const terms = submissionTerms(event_type, payload);
    const earlier = signed.is_another ? undefined : transaction.first(terms.submission);
    if (earlier !== undefined) return { pseudonym, earlier };
    const isSigned = [terms.payload, terms.signature].some((term) => transaction.first(term) !== undefined);
    if (isSigned && !signed.may_differ) throw proofRequired();
    if (row) requireActive(transaction, key.fingerprint);
    else appendRegistration(transaction, { key, pseudonym, expiration_date: null, possession_signature: null });
    transaction.append({ event_type, payload });
    return { pseudonym };
  },
);

const proofRequired = () =>
  new CairnlogError(
    "proof-required",
    "The log has an attestation made of this signature with another type, statement or list of earlier attestations. Show that you hold the key: by a session, an auth proof or the key's password, or sign type and statement in the manifest.",
  );
