/**
 * Signing a document in two steps (`POST /documents/sign`). The first step returns the manifest and the bytes to sign.
 * The second step sends the same request with the signature. The manifest is made from the request alone, so nothing is
 * stored in between. If the first request names type and statement, they are members of the manifest's document, and so
 * are signed.
 */

import { CairnlogError } from "../../base/error.js";
import type * as contract from "../../contract/signing/attestations.js";
import type { Body, Value } from "../../contract/types.js";
import { importPublicKey } from "../../crypto/keys/spki.js";
import { encodeBase64 } from "../../verify/bytes/encoding.js";
import { type Manifest, manifestHash, normaliseContentHash, signingPayload } from "../../verify/events/manifest.js";
import { Faults } from "../shared/input.js";
import type { Caller } from "../writes/writes.js";
import type { Attestations, Possession } from "./attestations.js";
import type { AttestationReceipt } from "./commands.js";
import { readManifest, readTerms } from "./manifest.js";

type DocumentSigning = Body<typeof contract.SignDocument>;

export type PreparedDocument = Value<typeof contract.PreparedDocument>;

/**
 * Performs the first step without `signature`, and the second with it.
 * @throws CairnlogError `invalid-input`, `invalid-key`, `private-key`, `forbidden` in both steps; in the second also
 *   those of `Attestations.submit`
 * @param shown as `Attestations.submit` takes it
 */
export async function signDocument(
  attestations: Attestations,
  request: DocumentSigning,
  shown: Possession | null = null,
  client: Caller | null = null,
): Promise<PreparedDocument | AttestationReceipt> {
  const { title, content_hash, tags, signature, ...submission } = request;
  const { attestation_type, intent_statement } = submission;
  const document = {
    content_hash: normaliseContentHash(content_hash) ?? content_hash,
    title,
    ...(tags == null ? {} : { tags }),
  };
  const terms = {
    ...(attestation_type == null ? {} : { attestation_type }),
    ...(intent_statement == null ? {} : { intent_statement }),
  };
  const manifest: PreparedDocument["manifest"] = { attestations: [], document: { ...document, ...terms } };
  checkDocument(manifest);
  if (signature != null) {
    const submit = (signed: Manifest) =>
      attestations.submit({ ...submission, manifest: signed, signature }, shown, client);
    try {
      return await submit(manifest);
    } catch (error) {
      const isUnnamed = Object.keys(terms).length > 0 && error instanceof CairnlogError;
      if (!isUnnamed || error.code !== "invalid-signature") throw error;
      // The first step did not name type and statement. They are then not signed, and the receipt says so.
      return submit({ attestations: [], document });
    }
  }
  attestations.predicate(attestation_type, importPublicKey(submission.public_key_pem).fingerprint);
  return {
    manifest,
    signing_payload: encodeBase64(signingPayload(manifest)),
    manifest_hash: manifestHash(manifest),
  };
}

/** Checks as `readManifest` does, but reports faults with paths into the request, which has the document's members. */
function checkDocument(manifest: Manifest): void {
  const faults = new Faults();
  readTerms(manifest.document, {}, faults);
  faults.check();
  try {
    readManifest(manifest, "");
  } catch (error) {
    if (!(error instanceof CairnlogError) || !error.details) throw error;
    for (const { path, message } of error.details) faults.add(path.replace(/^\/document/, ""), message);
    faults.check();
  }
}
