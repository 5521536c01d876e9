/**
 * Signatures on the server: libsodium for Ed25519, OpenSSL for P-256 and RSA. The checks here add the rules that these
 * libraries lack, so that this and the portable verifier (`engine/verify/keys/signature.ts`) agree on every input.
 */
import { constants, verify } from "node:crypto";
import { ecdsaCompact } from "../../verify/keys/signature.js";
import { loadSodium } from "./sodium.js";
import { opensslKey, type VerifyingKey } from "./spki.js";

/** Loaded with this module: when the first signature comes, the process may have no file descriptor left. */
const sodium = loadSodium();
const ED25519_SIGNATURE_BYTES = 64;

/**
 * Whether `signature` is a signature by the key over exactly these bytes. Both may come from an attacker and may be in
 * shared memory. A malformed signature is `false`, never an exception. Same rules as `verifySignature`.
 */
export function verifySync(key: VerifyingKey, message: Uint8Array, signature: Uint8Array): boolean {
  const bytes = unshared(message);
  const signed = unshared(signature);
  switch (key.algorithm) {
    case "ed25519":
      return (
        signed.length === ED25519_SIGNATURE_BYTES && sodium.crypto_sign_verify_detached(signed, bytes, key.raw) === true
      );
    case "ecdsa-p256": {
      const compact = ecdsaCompact(signed);
      return (
        compact !== undefined &&
        verify("sha256", bytes, { key: opensslKey(key.pem), dsaEncoding: "ieee-p1363" }, compact)
      );
    }
    case "rsa-2048":
      return verify("sha256", bytes, { key: opensslKey(key.pem), padding: constants.RSA_PKCS1_PADDING }, signed);
  }
}

/**
 * A copy if the bytes are in shared memory: libsodium returns `undefined` for it, and another thread could change it
 * between two reads.
 */
function unshared(bytes: Uint8Array): Uint8Array {
  return bytes.buffer instanceof SharedArrayBuffer ? new Uint8Array(bytes) : bytes;
}
