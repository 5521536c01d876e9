/** How attestations are recorded. Whoever runs this has verified the signature. */
import { define, type Transaction } from "../../log/write/commands.js";
import type { KeyRow } from "../../store/rows.js";
import type { AttestationEvent } from "../../verify/bundle/format.js";
import { appendRegistration, type PlainKey } from "../keys/commands.js";
import { requireActive } from "../keys/status.js";
import { sameAttestationTerm } from "./events.js";

/** A submission whose signature holds. */
export interface SignedAttestation {
  readonly key: PlainKey;
  /** Of a key that is not registered yet. */
  readonly pseudonym: string;
  readonly event_type: string;
  readonly attestation_id: string;
  readonly attestation_type: string;
  readonly document_hash: string;
  readonly document_title: string;
  readonly intent_statement: string | null;
  /** Bare hex. */
  readonly manifest_hash: string;
  /** Base64, as it was sent. */
  readonly signature: string;
  readonly tags: readonly string[];
  /**
   * Whether the entry under this submission's term is known to be of another one: a term is half of a SHA-256 only.
   */
  readonly is_another: boolean;
}

/** What the command appended, or the leaf index of the entry that seems to be this submission's already. */
export type Recorded = { readonly pseudonym: string } & (
  | { readonly event: AttestationEvent }
  | { readonly earlier: number; readonly event?: never }
);

/** Registers the key first when it is new. @throws CairnlogError `key-not-active` */
export const recordAttestation = define(
  "attestation.record",
  (transaction: Transaction, signed: SignedAttestation): Recorded => {
    const { key, event_type } = signed;
    const row: KeyRow | undefined = transaction.get("keys", key.fingerprint);
    const pseudonym = row?.pseudonym ?? signed.pseudonym;
    const earlier = signed.is_another
      ? undefined
      : transaction.first(sameAttestationTerm(key.fingerprint, signed.manifest_hash, event_type));
    if (earlier !== undefined) return { pseudonym, earlier };
    if (row) requireActive(transaction, key.fingerprint);
    else appendRegistration(transaction, { key, pseudonym, expiration_date: null, possession_signature: null });
    // In the order of canonical JSON, which then has nothing to sort.
    const payload = {
      attestation_id: signed.attestation_id,
      attestation_type: signed.attestation_type,
      document_hash: signed.document_hash,
      document_title: signed.document_title,
      intent_statement: signed.intent_statement,
      manifest_hash: signed.manifest_hash,
      signature: signed.signature,
      signature_algorithm: key.algorithm,
      signer_key_fingerprint: key.fingerprint,
      tags: signed.tags,
      timestamp: transaction.timestamp,
    };
    transaction.append({ event_type, payload });
    return { pseudonym, event: payload };
  },
);
