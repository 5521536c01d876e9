/**
 * Receipts by a dishonest operator who records anything: a verifier must not trust a statement only because it is in a
 * log. They are made with node:crypto from the documentation alone.
 */
import { createPrivateKey, sign } from "node:crypto";
import { canonical, sha256, type TestManifest, type TestSigner } from "./signers.js";

const TIME = "2025-03-01T12:00:00.250000Z";

export interface Recorded {
  readonly manifest: TestManifest;
  readonly algorithm: string;
  /** PEM, as in the receipt. */
  readonly key: string;
  readonly signature: Uint8Array;
}

/** An `.attestation.json` for the only entry of a log. All of it is valid except for the content of `recorded`. */
export function receiptOf({ manifest, algorithm, key, signature }: Recorded, operator: TestSigner): object {
  const fingerprint = `sha256:${sha256(Buffer.from(key.split("-----")[2] ?? "", "base64"))}`;
  const { title, content_hash } = manifest.document;
  const shared = {
    signer_key_fingerprint: fingerprint,
    signature_algorithm: algorithm,
    signature: Buffer.from(signature).toString("base64"),
    timestamp: TIME,
  };
  const attestation = { id: "a-1", type: "authorship", scope: { content_hash }, ...shared };
  const payload = {
    ...shared,
    attestation_id: "a-1",
    attestation_type: "authorship",
    document_hash: content_hash,
    manifest_hash: sha256(canonical(manifest)),
    document_title: title,
  };
  const bound = { payload, previous_hash: null, timestamp: TIME };
  const entry_hash = sha256(`service.log.entry.v2\0${canonical(bound)}`);
  const leaf_hash = sha256(`\0${entry_hash}`);
  const signed = sign(null, Buffer.from(`${leaf_hash}:1:${TIME}`), createPrivateKey(operator.privateKey));
  const sth = {
    tree_size: 1,
    root_hash: leaf_hash,
    signature: signed.toString("base64"),
    timestamp: TIME,
    key_id: operator.fingerprint,
    tree_version: 2,
  };
  const entry = {
    id: 1,
    event_type: "https://x-service.example/predicates/authorship/v1",
    ...bound,
    entry_hash,
    chain_version: 2,
    entry_hashes: [{ algorithm: "sha2-256", digest_hex: entry_hash, is_primary: true }],
  };
  const size = { leaf_index: 0, tree_size: 1, tree_version: 2 };
  const proof = { ...size, leaf_hash, root_hash: leaf_hash, audit_path: [], entry_hash, sth };
  return { format: "cairnlog-attestation/v1", manifest, attestation, public_key: key, entry, proof, tree_head: sth };
}
