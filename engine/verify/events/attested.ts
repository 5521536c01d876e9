/** The members of an attestation's log entry that say what was attested, by whom and how. */
import { text } from "../json/shape.js";

export const ATTESTED_MEMBERS = {
  attestation_id: text,
  attestation_type: text,
  signer_key_fingerprint: text,
  document_hash: text,
  manifest_hash: text,
  document_title: text,
  signature_algorithm: text,
  signature: text,
};
