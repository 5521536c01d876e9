/** Attestations that are prepared and signed before a load, so that signing them costs nothing while it runs. */
import { createPublicKey, generateKeyPairSync, hash, type KeyObject, sign } from "node:crypto";

/** The body of `POST /api/v1/attestations`. */
export interface Submission {
  readonly manifest: unknown;
  readonly public_key_pem: string;
  readonly signature: string;
  readonly attestation_type: "authorship";
}

/** Somebody who signs. */
export interface Signer {
  readonly public_key_pem: string;
  /** @returns base64 */
  sign(message: Uint8Array): string;
}

export const signerOf = (key: KeyObject): Signer => ({
  public_key_pem: createPublicKey(key).export({ type: "spki", format: "pem" }).toString(),
  sign: (message) => sign(null, message, key).toString("base64"),
});

/**
 * This many attestations of documents that no other `name` has. Members of the manifest are in canonical order, so the
 * sent bytes are the signed bytes.
 * @param signerAt signs number n; if absent, one new key signs all of them
 */
export function signedSubmissions(count: number, name: string, signerAt?: (n: number) => Signer): Submission[] {
  const one = signerAt ? null : signerOf(generateKeyPairSync("ed25519").privateKey);
  return Array.from({ length: count }, (_, n) => {
    const title = `${name} document ${n}`;
    const content_hash = `sha256:${hash("sha256", title)}`;
    const manifest = { attestations: [], document: { content_hash, tags: ["load"], title } };
    const signer = one ?? signerAt!(n);
    const signature = signer.sign(Buffer.from(JSON.stringify(manifest)));
    return { manifest, public_key_pem: signer.public_key_pem, signature, attestation_type: "authorship" };
  });
}
