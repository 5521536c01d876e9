/** The command that records an attestation, and its receipt. The caller has verified the signature. */
import { CairnlogError } from "../../base/error.js";
import type * as contract from "../../contract/signing/attestations.js";
import type { Value } from "../../contract/types.js";
import { define, type Transaction } from "../../log/state/commands.js";
import type { Receipt } from "../../log/state/executor.js";
import type { KeyRow } from "../../store/schema/rows.js";
import type { AttestationEvent } from "../../verify/bundle/format.js";
import { normaliseContentHash, type SignedMembers } from "../../verify/events/manifest.js";
import type { Entry } from "../../verify/tree/entry.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { recordedAttestation } from "../events/attestations.js";
import { givesWay, keyNotActive, type PlainKey, registrationOf, requireActive } from "../events/keys.js";

/** What the event of a submission is made of. */
interface AttestationContent {
  readonly key: PlainKey;
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
}

/**
 * A submission with a valid signature. Its terms come with it, because they follow from its content: made in the thread of a
 * front end, they are an eighth less of work for the writer's thread.
 */
export interface SignedAttestation {
  readonly content: AttestationContent;
  readonly event_type: string;
  /** Used if the key is not registered yet, or names itself. */
  readonly pseudonym: string;
  /** Base64 signature by which the key names itself, verified. Absent in nearly all submissions. */
  readonly possession_signature?: string;
  /** `Log.termsOf` its event. */
  readonly terms: string;
  /** The three terms of `submissionTerms`. */
  readonly submission_term: string;
  readonly payload_term: string;
  readonly signature_term: string;
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
  /** Present for an operator key that a rotation has ended: its row, if it has one, need not say so. */
  readonly is_retired?: true;
}

/** The signer's name, and the leaf index of an entry that seems to be the same submission; without one, it was appended. */
export interface RecordedAttestation {
  readonly pseudonym: string;
  readonly earlier?: number;
}

/** The payload of the event of a submission that is recorded at this moment. */
export const attestationEvent = (content: AttestationContent, timestamp: string) => ({
  // The members are in the order of canonical JSON, so that it has nothing to sort. It leaves out what is undefined; a spread
  // in their middle would make V8 define all that follow one by one.
  attestation_id: content.attestation_id,
  attestation_type: content.attestation_type,
  document_hash: content.document_hash,
  document_title: content.document_title,
  intent_statement: content.intent_statement,
  manifest_hash: content.manifest_hash,
  signature: content.signature,
  signature_algorithm: content.key.algorithm,
  signed_payload_hash: content.signed_payload_hash ?? undefined,
  signer_key_fingerprint: content.key.fingerprint,
  tags: content.tags,
  timestamp,
});

/**
 * Registers the key first when it is new, or names itself.
 * @throws CairnlogError `key-not-active`; `proof-required` if the signature has made another attestation before, and
 *   the submission does not show that it comes from the signer
 */
export const recordAttestation = define(
  "attestation.record",
  (transaction: Transaction, signed: SignedAttestation): RecordedAttestation => {
    const { content, event_type, terms } = signed;
    const { key } = content;
    const row: KeyRow | undefined = transaction.get("keys", key.fingerprint);
    const earlier = signed.is_another ? undefined : transaction.first(signed.submission_term);
    if (earlier !== undefined) return { pseudonym: row?.pseudonym ?? signed.pseudonym, earlier };
    if (signed.is_retired) throw keyNotActive(key.fingerprint, { status: "succeeded", named: false });
    const isSigned = (term: string) => transaction.first(term) !== undefined;
    if (!signed.may_differ && (isSigned(signed.payload_term) || isSigned(signed.signature_term))) throw proofRequired();
    const { possession_signature = null } = signed;
    const isRegistered = row !== undefined && !(possession_signature !== null && givesWay(row, { named: true }));
    const pseudonym = isRegistered ? row.pseudonym : signed.pseudonym;
    // Whoever takes this signature from the log can name the key only as its holder has.
    if (isRegistered) requireActive(transaction, key.fingerprint);
    else transaction.append(registrationOf({ key, pseudonym, expiration_date: null, possession_signature }));
    transaction.append({ event_type, payload: attestationEvent(content, transaction.timestamp), terms });
    return { pseudonym };
  },
);

const proofRequired = () =>
  new CairnlogError(
    "proof-required",
    "The log has an attestation made of this signature with another type, statement or list of earlier attestations. Show that you hold the key: by a session, an auth proof or the key's password, or sign type and statement in the manifest.",
  );

// Receipts of attestations: of a new entry, and of the entry that an earlier submission made.

export type AttestationReceipt = Value<typeof contract.AttestationReceipt>;

/** @param names what of the submission the signature covers */
export function newReceipt(
  { content }: SignedAttestation,
  pseudonym: string,
  { timestamp, log_entry_id, leaf_index, entry_hash, sth }: Receipt,
  names: SignedMembers,
): AttestationReceipt {
  return {
    attestation: recordedAttestation(attestationEvent(content, timestamp)),
    fingerprint: content.key.fingerprint,
    pseudonym,
    log_entry_id,
    leaf_index,
    entry_hash,
    manifest_hash: content.manifest_hash,
    sth,
    duplicate: false,
    signed: names,
  };
}

/**
 * @param event payload of `entry`
 * @param sth the head of the size that ends with it
 * @param names what of the submission the signature covers
 */
export function earlierReceipt(
  event: AttestationEvent,
  pseudonym: string,
  { id, entry_hash }: Pick<Entry, "id" | "entry_hash">,
  leafIndex: number,
  sth: TreeHead | null,
  names: SignedMembers,
): AttestationReceipt {
  return {
    attestation: recordedAttestation(event),
    fingerprint: event.signer_key_fingerprint,
    pseudonym,
    log_entry_id: id,
    leaf_index: leafIndex,
    entry_hash,
    manifest_hash: normaliseContentHash(event.manifest_hash)!.slice("sha256:".length),
    sth,
    duplicate: true,
    signed: names,
  };
}
