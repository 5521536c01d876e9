/**
 * Signatures on the server: libsodium for Ed25519, OpenSSL for P-256 and RSA. The checks here add the rules that these
 * libraries lack, so that this and the portable verifier (`engine/verify/keys/signature.ts`) agree on every input.
 */
import {
  constants,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as opensslSign,
  verify,
} from "node:crypto";
import { CairnlogError } from "../../base/error.js";
import type { KeyAlgorithm, PublicKey } from "../../verify/keys/publickey.js";
import { ecdsaCompact } from "../../verify/keys/signature.js";
import type { SignatureCheck } from "../../verify/note/verify.js";
import { loadSodium } from "./ed25519.js";
import { importPublicKey, opensslKey, type ServerKey, type VerifyingKey } from "./spki.js";

const ED25519_SIGNATURE_BYTES = 64;

export interface PrivateKey {
  readonly public: ServerKey;
  readonly keyObject: KeyObject;
  /** The seed and the public point in libsodium's form. Only for Ed25519. */
  readonly sodiumKey?: Buffer;
}

/**
 * Parses a PEM private key (PKCS#8, PKCS#1 or SEC 1) of one of the three algorithms.
 * @throws CairnlogError `invalid-key`
 */
export function privateKey(pem: string, passphrase?: string): PrivateKey {
  let keyObject: KeyObject;
  try {
    keyObject = createPrivateKey(passphrase === undefined ? pem : { key: pem, passphrase });
  } catch (cause) {
    throw new CairnlogError("invalid-key", "This is not a PEM private key that can be read.", { cause });
  }
  const publicPem = createPublicKey(keyObject).export({ type: "spki", format: "pem" }).toString();
  const publicKey = importPublicKey(publicPem);
  if (publicKey.algorithm !== "ed25519") return { public: publicKey, keyObject };
  const seed = Buffer.from(keyObject.export({ format: "jwk" }).d!, "base64url");
  return { public: publicKey, keyObject, sodiumKey: Buffer.concat([seed, publicKey.raw]) };
}

/**
 * Signs each message like `signSync`. Ed25519 signatures share one piece of memory: a small array of its own has no
 * memory that libsodium could write to before V8 has made some, which takes longer than making the array.
 */
export function signEach(key: PrivateKey, messages: readonly Uint8Array[]): Uint8Array[] {
  if (key.public.algorithm !== "ed25519") return messages.map((message) => signSync(key, message));
  const sodium = loadSodium();
  const memory = new ArrayBuffer(ED25519_SIGNATURE_BYTES * messages.length);
  return messages.map((message, i) => {
    const signature = new Uint8Array(memory, ED25519_SIGNATURE_BYTES * i, ED25519_SIGNATURE_BYTES);
    sodium.crypto_sign_detached(signature, message, key.sodiumKey!);
    return signature;
  });
}

/** Makes a key pair. @returns the private key as PKCS#8 PEM */
export function generatePrivateKey(algorithm: KeyAlgorithm): string {
  const { privateKey: key } =
    algorithm === "ed25519"
      ? generateKeyPairSync("ed25519")
      : algorithm === "ecdsa-p256"
        ? generateKeyPairSync("ec", { namedCurve: "P-256" })
        : generateKeyPairSync("rsa", { modulusLength: 2048 });
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

/**
 * Signs `message`: Ed25519 (64 bytes), ECDSA with SHA-256 (64 bytes, IEEE P1363), or RSASSA-PKCS1-v1_5 with SHA-256.
 */
export function signSync(key: PrivateKey, message: Uint8Array): Buffer {
  switch (key.public.algorithm) {
    case "ed25519": {
      const signature = Buffer.allocUnsafeSlow(ED25519_SIGNATURE_BYTES);
      loadSodium().crypto_sign_detached(signature, message, key.sodiumKey!);
      return signature;
    }
    case "ecdsa-p256":
      return opensslSign("sha256", message, { key: key.keyObject, dsaEncoding: "ieee-p1363" });
    case "rsa-2048":
      return opensslSign("sha256", message, { key: key.keyObject, padding: constants.RSA_PKCS1_PADDING });
  }
}

/** Loaded with this module: when the first signature comes, the process may have no file descriptor left. */
const sodium = loadSodium();

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

// Signatures in notes, checked by libsodium: some thirty times faster than the portable check, with the same verdicts.

/** For `verifyNote` and `verifySignatures` on a server. */
export const checkNoteSignature: SignatureCheck = (key: PublicKey, message: Uint8Array, signature: Uint8Array) =>
  verifySync(importPublicKey(key.pem), message, signature);
