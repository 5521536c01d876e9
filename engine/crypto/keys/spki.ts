/**
 * Public keys on the server: decided by the verifier's own parser, kept in a form ready for native verification.
 */
import { createPublicKey, type KeyObject } from "node:crypto";
import { ownText } from "../../own-text.js";
import { Recent } from "../../recent.js";
import { type PublicKey, parsePublicKey } from "../../verify/keys/publickey.js";

/** What it takes to verify a signature. `raw` is the 32 bytes of an Ed25519 point. */
export type VerifyingKey =
  | { readonly algorithm: "ed25519"; readonly raw: Buffer }
  | { readonly algorithm: "ecdsa-p256" | "rsa-2048"; readonly pem: string };

/** A checked public key. */
export type ServerKey = VerifyingKey & {
  /** `sha256:` and the hex of SHA-256 over its SubjectPublicKeyInfo in DER, as re-encoded by the parser. */
  readonly fingerprint: string;
  /** The same as PEM, normalised. */
  readonly pem: string;
};

/** Clients choose the texts, so the cache is bounded. */
const KEPT_KEYS = 10_000;
/** Longer texts are parsed each time: an RSA key of 8192 bits takes 1.5 KB, and what is beyond that is padding. */
const MAX_KEPT_CHARACTERS = 2048;
const KEPT_OPENSSL_KEYS = 1_000;
const ED25519_BYTES = 32;

/** By text, least recently used first. Parsing costs more than a verification, and a text always gives the same key. */
const keys = new Recent<string, ServerKey>(KEPT_KEYS);
/** By normalised PEM. */
const opensslKeys = new Recent<string, KeyObject>(KEPT_OPENSSL_KEYS);

/**
 * Parses and checks one PEM block `PUBLIC KEY`; keys parsed before come from a cache. The text may come from an attacker.
 * @throws CairnlogError `private-key` or `invalid-key`, exactly where `parsePublicKey` does.
 */
export function importPublicKey(pem: string): ServerKey {
  if (typeof pem !== "string" || pem.length > MAX_KEPT_CHARACTERS) return toServerKey(parsePublicKey(pem));
  // Around the block there may be white space of any kind; within, all is ASCII.
  const text = pem.trim();
  return keys.look(text) ?? keys.keep(ownText(text), toServerKey(parsePublicKey(pem)));
}

function toServerKey(parsed: PublicKey): ServerKey {
  const { algorithm, der } = parsed;
  const [fingerprint, pem] = [ownText(parsed.fingerprint), ownText(parsed.pem)];
  if (algorithm === "ed25519") {
    // Memory of its own: a piece of Node's pool would keep 8 KiB for as long as the key is kept.
    const raw = Buffer.from(new Uint8Array(der.subarray(-ED25519_BYTES)).buffer);
    return { algorithm, raw, fingerprint, pem };
  }
  // Made at once: if OpenSSL has something against it, now is the time.
  opensslKey(pem);
  return { algorithm, fingerprint, pem };
}

/**
 * The key of a normalised PEM in OpenSSL's form, of which the last 1,000 are kept: they take 3.5 KB each outside of the
 * heap, where no collector sees them. To make one takes 170 µs, as much as two P-256 verifications.
 */
export const opensslKey = (pem: string): KeyObject => opensslKeys.get(pem, () => createPublicKey(pem));

/** A key as bytes for another thread: an Ed25519 point, or PEM, which is longer. */
export const keyToBytes = (key: ServerKey): Uint8Array =>
  key.algorithm === "ed25519" ? key.raw : Buffer.from(key.pem, "latin1");

/** What `keyToBytes` has made of a key, which was checked then and is not again. */
export function keyFromBytes(bytes: Uint8Array): VerifyingKey {
  if (bytes.length === ED25519_BYTES) return { algorithm: "ed25519", raw: Buffer.from(bytes) };
  const pem = Buffer.from(bytes).toString("latin1");
  return { algorithm: opensslKey(pem).asymmetricKeyType === "ec" ? "ecdsa-p256" : "rsa-2048", pem };
}
