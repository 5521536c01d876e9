/** The payload of an attestation's log entry: the members that say what was attested, by whom and how, and what they follow from. */
import { anyText, arrayOf, fits, hexHash, orNull } from "../json/shape.js";
import { MAX_TAG_CHARACTERS, MAX_TAGS } from "../keys/contract.js";
import type { Attestation, Manifest } from "./manifest.js";

/** Members that every such payload has. */
export const ATTESTED_MEMBERS = {
  attestation_id: anyText,
  attestation_type: anyText,
  signer_key_fingerprint: anyText,
  document_hash: anyText,
  manifest_hash: anyText,
  document_title: anyText,
  signature_algorithm: anyText,
  signature: anyText,
  timestamp: anyText,
};

/** Members that it may have. */
export const ATTESTED_FURTHER = {
  intent_statement: orNull(anyText),
  /** SHA-256 of the signed bytes, bare hex. Present only if these are not the manifest as it was submitted. */
  signed_payload_hash: hexHash,
  tags: arrayOf(anyText),
};

/** The tags that the log takes over from a manifest: all of them or none. */
export function recordedTags({ document: { tags } }: Pick<Manifest, "document">): readonly string[] {
  const taken =
    Array.isArray(tags) &&
    tags.length <= MAX_TAGS &&
    tags.every((tag) => typeof tag === "string" && fits(tag, MAX_TAG_CHARACTERS));
  return taken ? tags : [];
}

/**
 * The payload that the entry of an attestation has, if the log recorded this one. Whoever has kept both can so prove what the
 * operator withholds.
 * @param attestation without members that it need not have
 * @param manifest_hash of the manifest as it was submitted, bare hex
 * @param signed_payload_hash of the signed bytes, if they are not that manifest
 */
export const attestedPayload = (
  manifest: Pick<Manifest, "document">,
  { id, type, scope, intent_statement = null, ...rest }: Attestation,
  manifest_hash: string,
  signed_payload_hash?: string,
) => ({
  ...rest,
  attestation_id: id,
  attestation_type: type,
  document_hash: scope.content_hash,
  document_title: manifest.document.title,
  intent_statement,
  manifest_hash,
  signed_payload_hash,
  tags: recordedTags(manifest),
});
