/**
 * Signing a document in two steps (`POST /documents/sign`): first the manifest and the bytes to sign, then the same
 * request with the signature. The manifest is made from the request alone, so nothing is kept in between.
 */
import { importPublicKey } from "../../crypto/keys/spki.js";
import { CairnlogError } from "../../error.js";
import { encodeBase64 } from "../../verify/encoding.js";
import { type Manifest, manifestHash, normaliseContentHash, signingPayload } from "../../verify/manifest.js";
import { Faults } from "../input.js";
import type { AttestationReceipt, Attestations, Submission } from "./attestations.js";
import { readManifest } from "./manifest.js";

export interface DocumentSigning extends Omit<Submission, "manifest" | "signature"> {
  readonly title: string;
  /** SHA-256 of the source, bare or prefixed. */
  readonly content_hash: string;
  readonly tags?: readonly string[] | null;
  /** Base64; absent in the first step. */
  readonly signature?: string | null;
}

export interface PreparedDocument {
  /** Without attestations yet. */
  readonly manifest: Manifest & { readonly attestations: readonly [] };
  /** Base64 of the bytes to sign. */
  readonly signing_payload: string;
  /** Bare hex. */
  readonly manifest_hash: string;
}

/**
 * The first step without `signature`, the second with it.
 * @throws CairnlogError `invalid-input`, `invalid-key`, `private-key`, `forbidden` in both steps; in the second also what
 *   `Attestations.submit` throws
 */
export async function signDocument(
  attestations: Attestations,
  request: DocumentSigning,
): Promise<PreparedDocument | AttestationReceipt> {
  const { title, content_hash, tags, signature, ...submission } = request;
  const document = { content_hash: normaliseContentHash(content_hash) ?? content_hash, title };
  const manifest: PreparedDocument["manifest"] = {
    attestations: [],
    document: tags == null ? document : { ...document, tags },
  };
  checkDocument(manifest);
  if (signature != null) return attestations.submit({ ...submission, manifest, signature });
  attestations.predicate(submission.attestation_type, importPublicKey(submission.public_key_pem).fingerprint);
  return {
    manifest,
    signing_payload: encodeBase64(signingPayload(manifest)),
    manifest_hash: manifestHash(manifest),
  };
}

/** As `readManifest`, its faults told of the request: the members of `document` are members of that. */
function checkDocument(manifest: Manifest): void {
  try {
    readManifest(manifest, "");
  } catch (error) {
    if (!(error instanceof CairnlogError) || !error.details) throw error;
    const faults = new Faults();
    for (const { path, message } of error.details) faults.add(path.replace(/^\/document/, ""), message);
    faults.check();
  }
}
