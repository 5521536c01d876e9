/** Public keys on the server: parsed by the verifier's own parser, and kept in a form ready for native verification. */
import { createPublicKey, type KeyObject } from "node:crypto";
import { CairnlogError } from "../../base/error.js";
import { Recent } from "../../base/recent.js";
import { type PublicKey, parsePublicKey, parseRecordedKey } from "../../verify/keys/publickey.js";
import { checkPoint, ED25519_BYTES, readPlainEd25519 } from "./ed25519.js";

/** The parts of a key that verify a signature. `raw` is the 32 bytes of an Ed25519 point. */
export type VerifyingKey =
  | { readonly algorithm: "ed25519"; readonly raw: Buffer }
  | { readonly algorithm: "ecdsa-p256" | "rsa-2048"; readonly pem: string };

/**
 * ASCII text in memory of its own, for what is kept. A string that was cut out of a row or a request keeps all of it alive,
 * and one that was put together keeps its parts: what is kept of a public key takes 0.6 KB of heap instead of 3.4.
 */
const ownText = (text: string): string => Buffer.from(text, "latin1").toString("latin1");

/** A checked public key. */
export type ServerKey = VerifyingKey & {
  /** `sha256:` and the hex of SHA-256 over its SubjectPublicKeyInfo in DER, as re-encoded by the parser. */
  readonly fingerprint: string;
  /** The key's SubjectPublicKeyInfo as normalised PEM. */
  readonly pem: string;
};

/** Clients choose the texts, so the cache has a limit. */
const KEPT_KEYS = 10_000;
/** Longer texts are parsed each time. An RSA key of 8192 bits takes 1.5 KB; the rest of a longer text is padding. */
const MAX_KEPT_CHARACTERS = 2048;
const KEPT_OPENSSL_KEYS = 1_000;

/**
 * Parsed keys by text, least recently used first, but for Ed25519 keys as nearly all clients write them, which are read as
 * fast as they are looked up. Parsing others costs more than a verification, and a text always gives the same key.
 */
const keys = new Recent<string, ServerKey>(KEPT_KEYS);
/** OpenSSL's keys by normalised PEM. */
const opensslKeys = new Recent<string, KeyObject>(KEPT_OPENSSL_KEYS);

/**
 * Parses and checks one PEM block `PUBLIC KEY`. The text may come from an attacker.
 * @throws CairnlogError `private-key` or `invalid-key`, in the same cases as `parsePublicKey`
 */
export function importPublicKey(pem: string): ServerKey {
  const plain = plainKey(pem);
  if (!plain) return parsedKey(pem);
  checkPoint(plain.raw);
  return plain;
}

/**
 * A key on the log, which an earlier version may have accepted (`parseRecordedKey`). It names a holder; nothing is verified
 * with it.
 * @throws CairnlogError as `importPublicKey` does
 */
export function importRecordedKey(pem: string): ServerKey {
  try {
    return importPublicKey(pem);
  } catch (error) {
    if (error instanceof CairnlogError && error.code === "invalid-key") return toServerKey(parseRecordedKey(pem));
    throw error;
  }
}

/**
 * Like `importPublicKey`, for a key whose signature is verified next: the point of an Ed25519 key may not have been checked,
 * since no signature verifies with a bad one. If the signature does not verify, `importPublicKey` says whether that is why.
 * @throws CairnlogError `private-key` or `invalid-key`
 */
export const signersKey = (pem: string): ServerKey => plainKey(pem) ?? parsedKey(pem);

// White space of any kind is allowed around the block; inside, only ASCII.
const plainKey = (pem: string) => (isKept(pem) ? readPlainEd25519(pem.trim()) : undefined);

function parsedKey(pem: string): ServerKey {
  if (!isKept(pem)) return toServerKey(parsePublicKey(pem, checkPoint));
  const text = pem.trim();
  const known = keys.get(text);
  if (known) return known;
  const key = toServerKey(parsePublicKey(pem, checkPoint));
  keys.set(ownText(text), key);
  return key;
}

const isKept = (pem: unknown): boolean => typeof pem === "string" && pem.length <= MAX_KEPT_CHARACTERS;

function toServerKey(key: PublicKey): ServerKey {
  const { algorithm, der } = key;
  const [fingerprint, pem] = [ownText(key.fingerprint), ownText(key.pem)];
  if (algorithm === "ed25519") {
    // A copy, because a slice of Node's buffer pool would keep 8 KiB alive as long as the key is cached.
    const raw = Buffer.from(new Uint8Array(der.subarray(-ED25519_BYTES)).buffer);
    return { algorithm, raw, fingerprint, pem };
  }
  // Parsed now, so that a key that OpenSSL refuses fails here.
  opensslKey(pem);
  return { algorithm, fingerprint, pem };
}

/**
 * The key of a normalised PEM in OpenSSL's form. The last 1,000 are kept: each takes 3.5 KB outside of the heap, where
 * the garbage collector does not see them. Making one takes 170 µs, as much as two P-256 verifications.
 */
export const opensslKey = (pem: string): KeyObject => opensslKeys.made(pem, () => createPublicKey(pem));

/** A key as bytes for another thread: an Ed25519 point, or PEM, which is longer. */
export const keyToBytes = (key: ServerKey): Uint8Array =>
  key.algorithm === "ed25519" ? key.raw : Buffer.from(key.pem, "latin1");

/** Inverse of `keyToBytes`. The key was checked before and is not checked again. */
export function keyFromBytes(bytes: Uint8Array): VerifyingKey {
  if (bytes.length === ED25519_BYTES) return { algorithm: "ed25519", raw: Buffer.from(bytes) };
  const pem = Buffer.from(bytes).toString("latin1");
  return { algorithm: opensslKey(pem).asymmetricKeyType === "ec" ? "ecdsa-p256" : "rsa-2048", pem };
}
