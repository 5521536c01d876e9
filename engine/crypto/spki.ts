/**
 * Public keys on the server: decided by the verifier's own parser, kept in a form ready for native verification.
 */
import { createPublicKey, type KeyObject } from "node:crypto";
import { type KeyAlgorithm, type PublicKey, parsePublicKey } from "../verify/publickey.js";

/** A checked public key. */
export interface ServerKey {
  readonly algorithm: KeyAlgorithm;
  /** `sha256:` and the hex of SHA-256 over `spki`. */
  readonly fingerprint: string;
  /** SubjectPublicKeyInfo in DER, as re-encoded by the parser. */
  readonly spki: Buffer;
  /** `spki` as PEM, normalised. */
  readonly pem: string;
  /** The 32 bytes of an Ed25519 point; absent for other algorithms. */
  readonly raw?: Buffer;
  readonly keyObject: KeyObject;
}

/** Clients choose the texts, so the cache is bounded: at most 40 MB with the longest PEM that the parser takes. */
const CACHE_CAPACITY = 10_000;
const ED25519_BYTES = 32;

/** Least recently used first. Parsing costs more than a verification, and a text always gives the same key. */
const cache = new Map<string, ServerKey>();

/**
 * Parses and checks one PEM block `PUBLIC KEY`; keys parsed before come from a cache. The text may come from an attacker.
 * @throws CairnlogError `private-key` or `invalid-key`, exactly where `parsePublicKey` does.
 */
export function importPublicKey(pem: string): ServerKey {
  const known = cache.get(pem);
  if (known !== undefined) {
    cache.delete(pem);
    cache.set(pem, known);
    return known;
  }
  const key = toServerKey(parsePublicKey(pem));
  if (cache.size >= CACHE_CAPACITY) cache.delete(cache.keys().next().value!);
  cache.set(pem, key);
  return key;
}

function toServerKey({ algorithm, fingerprint, der, pem }: PublicKey): ServerKey {
  const spki = Buffer.from(der);
  const keyObject = createPublicKey({ key: spki, format: "der", type: "spki" });
  const key = { algorithm, fingerprint, spki, pem, keyObject };
  return algorithm === "ed25519" ? { ...key, raw: spki.subarray(-ED25519_BYTES) } : key;
}
