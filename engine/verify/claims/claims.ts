/**
 * Encrypted claims: only the recipient can read the plaintext, although everybody can read the log. ECIES on P-256 with
 * AES-256-GCM. The payload also has a commitment to the plaintext. Without its key, nobody can test guesses against it.
 *
 *     Z  = x-coordinate of ECDH(ephemeral, recipient)                      (SEC 1 §3.3.1, 32 bytes)
 *     K  = HKDF-SHA256(Z, salt = ephemeral ‖ recipient, info = label)      (RFC 5869; points SEC 1 uncompressed)
 *     ciphertext = AES-256-GCM(K "service.claim.v1 encryption", nonce, plaintext, AAD)
 *     commitment = HMAC-SHA256(K "service.claim.v1 commitment", plaintext)
 *
 * The plaintext is RFC 8785 canonical JSON of an object. AAD is the RFC 8785 canonical JSON of the payload's members
 * `commitment`, `commitment_alg`, `ephemeral_public_key`, `lookup_key` and, where present, `recipient_fingerprint`. So
 * nobody can give a ciphertext another commitment or file it under another lookup key. AES-GCM alone does not commit to
 * its key: one ciphertext can be made that opens under two keys. Decryption therefore checks the commitment as well.
 */
import { gcm } from "@noble/ciphers/aes.js";
import { equalBytes } from "@noble/ciphers/utils.js";
import { p256 } from "@noble/curves/nist.js";
import { expand, extract, hkdf } from "@noble/hashes/hkdf.js";
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { randomBytes } from "@noble/hashes/utils.js";
import { CairnlogError, inputError } from "../../base/error.js";
import { decodeBase64, encodeBase64, fromHex, isHexHash, toHex, utf8 } from "../bytes/encoding.js";
import { canonicalJson, parseIJson } from "../json/canonical.js";
import { isObject, type JsonObject } from "../json/shape.js";
import type { PublicKey } from "../keys/publickey.js";
import {
  type ClaimPayload,
  COMMITMENT_ALG,
  commitmentKind,
  isLookupKey,
  MAX_CIPHERTEXT_BYTES,
  NONCE_BYTES,
  readClaimPayload,
  TAG_BYTES,
} from "./format.js";

export * from "./format.js";

const KEY_BYTES = 32;
const POINT_BYTES = 65;
const ENCRYPTION_LABEL = utf8("service.claim.v1 encryption");
const COMMITMENT_LABEL = utf8("service.claim.v1 commitment");
/** A zero byte separates it from the context, so that no context can form another label. */
const LOOKUP_LABEL = "service.claim.v1 lookup\0";
/** Lookup keys are public, so a shorter secret could be found by trial. */
const MIN_SECRET_BYTES = 16;
const COMMITMENT_KEY = /^[0-9a-f]{64}$/i;

export interface EncryptOptions {
  /** A P-256 key, as `parsePublicKey` returns it. */
  readonly recipient: PublicKey;
  /** 32 to 128 lower-case hex characters; see `deriveLookupKey`. */
  readonly lookupKey: string;
  /** Whether the payload publicly names the recipient's key; false if absent. */
  readonly nameRecipient?: boolean;
}

/** A claim that is ready to be posted. */
export interface EncryptedClaim {
  readonly payload: ClaimPayload;
  /** Hex. Only the recipient can derive it again. The poster needs it to reveal the claim, and has to keep it. */
  readonly commitmentKey: string;
}

export interface DecryptedClaim {
  readonly plaintext: JsonObject;
  /** Hex. */
  readonly commitmentKey: string;
}

interface ClaimKeys {
  readonly encryption: Uint8Array;
  readonly commitment: Uint8Array;
}

/**
 * Encrypts `plaintext` to `recipient` under a fresh ephemeral key, so that equal plaintexts give unrelated payloads.
 * Bytes are wrapped as `{data: base64}`; see `unwrapBytes`.
 * @throws CairnlogError `invalid-key` for a recipient whose key is not P-256; `invalid-input` for a malformed lookup
 *   key or a plaintext that is not an object; `not-i-json` for one that a strict reader would refuse;
 *   `payload-too-large`
 */
export function encryptClaim(
  plaintext: JsonObject | Uint8Array,
  { recipient, lookupKey, nameRecipient = false }: EncryptOptions,
): EncryptedClaim {
  if (!isLookupKey(lookupKey)) throw inputError("A lookup key must be 32 to 128 lower-case hexadecimal characters.");
  const text = plaintextBytes(plaintext);
  if (text.length + TAG_BYTES > MAX_CIPHERTEXT_BYTES)
    throw new CairnlogError(
      "payload-too-large",
      `The plaintext has ${text.length} bytes as canonical JSON; at most ${MAX_CIPHERTEXT_BYTES - TAG_BYTES} fit.`,
    );
  const recipientPoint = pointOf(recipient);
  const { secretKey, publicKey } = ephemeralPair();
  const keys = deriveKeys(secretKey, recipientPoint, publicKey, recipientPoint);
  const nonce = randomBytes(NONCE_BYTES);
  const open = {
    commitment_alg: COMMITMENT_ALG,
    ephemeral_public_key: encodeBase64(publicKey),
    commitment: toHex(hmac(sha256, keys.commitment, text)),
    lookup_key: lookupKey,
    ...(nameRecipient ? { recipient_fingerprint: recipient.fingerprint } : {}),
  } as const;
  const ciphertext = gcm(keys.encryption, nonce, associatedData(open)).encrypt(text);
  return {
    payload: { ...open, nonce: encodeBase64(nonce), ciphertext: encodeBase64(ciphertext) },
    commitmentKey: toHex(keys.commitment),
  };
}

/**
 * Decrypts a claim's payload and checks that its commitment is to exactly the decrypted bytes. The payload may come
 * from an attacker.
 * @param secretKey the recipient's P-256 scalar, 32 bytes big-endian
 * @throws CairnlogError as `readClaimPayload` does; `invalid-key` for a malformed secret key; `decryption-failed` when
 *   the claim is another recipient's, when any part of it was changed, or when it commits to something else
 */
export function decryptClaim(payload: unknown, secretKey: Uint8Array): DecryptedClaim {
  const claim = readClaimPayload(payload);
  const keys = recipientKeys(claim.ephemeralKey, secretKey);
  let text: Uint8Array;
  try {
    text = gcm(keys.encryption, claim.nonce, associatedData(claim.payload)).decrypt(claim.ciphertext);
  } catch {
    throw decryptionFailed("The claim was encrypted to another key, or it was changed.");
  }
  const plaintext = readPlaintext(text);
  if (!isCommittedTo(claim.payload.commitment, plaintext, keys.commitment))
    throw decryptionFailed("The claim commits to something else than it holds.");
  return { plaintext, commitmentKey: toHex(keys.commitment) };
}

/**
 * The commitment key of a claim, which its recipient can derive without decrypting it.
 * @param secretKey as for `decryptClaim`
 * @returns hex
 * @throws CairnlogError as `readClaimPayload` does; `invalid-key`
 */
export function deriveCommitmentKey(payload: unknown, secretKey: Uint8Array): string {
  return toHex(recipientKeys(readClaimPayload(payload).ephemeralKey, secretKey).commitment);
}

/**
 * Whether a claim commits to `plaintext`. Needs the commitment key, unless the claim is older than keyed commitments
 * (no `commitment_alg`). Such a claim commits by the bare SHA-256 of the canonical JSON, and a given key is ignored.
 * Compares in constant time.
 * @param payload of an entry, checked only as far as it is used
 * @param commitmentKey 64 hex characters
 * @throws CairnlogError `unsupported-commitment` for a commitment of another kind; `commitment-key-missing`;
 *   `invalid-input` for a malformed key or commitment; `not-i-json` for a plaintext without canonical form
 */
export function verifyClaimCommitment(
  payload: unknown,
  plaintext: JsonObject | Uint8Array,
  commitmentKey?: string | null,
): boolean {
  if (!isObject(payload)) throw inputError("A claim must be an object.");
  const { commitment } = payload;
  if (!isHexHash(commitment)) throw inputError("The claim's commitment is not 64 lower-case hexadecimal characters.");
  const value = isBytes(plaintext) ? wrapBytes(plaintext) : plaintext;
  switch (commitmentKind(payload)) {
    case "unsalted":
      return equalBytes(sha256(utf8(canonicalJson(value))), fromHex(commitment));
    case "keyed":
      return isCommittedTo(commitment, value, readCommitmentKey(commitmentKey));
    case "unknown":
      throw new CairnlogError("unsupported-commitment", "The claim declares a commitment of an unknown kind.");
  }
}

/**
 * A lookup key that only holders of `secret` can compute, and that reveals nothing about either party: HKDF-SHA256 with
 * the label `service.claim.v1 lookup`, a zero byte and `context`.
 * @param secret at least 16 bytes that cannot be guessed
 * @param context distinguishes the lookup keys of one secret; may be empty
 * @returns 64 hex characters
 * @throws CairnlogError `invalid-input` for a secret that is too short or a context that UTF-8 cannot encode
 */
export function deriveLookupKey(secret: Uint8Array, context: string): string {
  if (secret.length < MIN_SECRET_BYTES)
    throw inputError(`The lookup secret must have at least ${MIN_SECRET_BYTES} bytes.`);
  if (/\p{Surrogate}/u.test(context))
    throw inputError("The context holds half of a surrogate pair, which UTF-8 cannot carry.");
  return toHex(hkdf(sha256, secret, undefined, utf8(LOOKUP_LABEL + context), KEY_BYTES));
}

/** Bytes as a plaintext. */
export function wrapBytes(data: Uint8Array): JsonObject {
  return { data: encodeBase64(data) };
}

/** The bytes that `wrapBytes` wrapped; undefined for any other plaintext. */
export function unwrapBytes(plaintext: JsonObject): Uint8Array | undefined {
  return Object.keys(plaintext).length === 1 ? decodeBase64(plaintext.data) : undefined;
}

/** The bytes of a commitment key. @throws CairnlogError `commitment-key-missing`, `invalid-input` */
function readCommitmentKey(key: unknown): Uint8Array {
  if (key === undefined || key === null)
    throw new CairnlogError(
      "commitment-key-missing",
      "This claim's commitment is keyed; its commitment key is needed.",
    );
  if (typeof key !== "string" || !COMMITMENT_KEY.test(key)) {
    const message = "It must be 64 hexadecimal characters.";
    throw inputError(`The commitment key is malformed. ${message}`, {
      details: [{ path: "/commitment_key", message }],
    });
  }
  return fromHex(key);
}

function isCommittedTo(commitment: string, plaintext: JsonObject, key: Uint8Array): boolean {
  return equalBytes(hmac(sha256, key, utf8(canonicalJson(plaintext))), fromHex(commitment));
}

/**
 * The bytes that are encrypted. They are read back at once: a plaintext that the recipient's strict reader would refuse
 * must not be posted.
 */
function plaintextBytes(plaintext: JsonObject | Uint8Array): Uint8Array {
  const text = canonicalJson(isBytes(plaintext) ? wrapBytes(plaintext) : plaintext);
  if (!isObject(parseIJson(text))) throw inputError("The plaintext must be an object or bytes.");
  return utf8(text);
}

/** The sender chose these bytes. They are authentic, but they may have any form. */
function readPlaintext(bytes: Uint8Array): JsonObject {
  let plaintext: unknown;
  try {
    plaintext = parseIJson(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    throw decryptionFailed("The claim holds something that is not I-JSON.");
  }
  if (!isObject(plaintext)) throw decryptionFailed("The claim holds something that is not an object.");
  return plaintext;
}

function associatedData(payload: Omit<ClaimPayload, "nonce" | "ciphertext">): Uint8Array {
  const { commitment, commitment_alg, ephemeral_public_key, lookup_key, recipient_fingerprint } = payload;
  const named = recipient_fingerprint === undefined ? {} : { recipient_fingerprint };
  return utf8(canonicalJson({ commitment, commitment_alg, ephemeral_public_key, lookup_key, ...named }));
}

function ephemeralPair(): { secretKey: Uint8Array; publicKey: Uint8Array } {
  const secretKey = p256.utils.randomSecretKey();
  return { secretKey, publicKey: p256.getPublicKey(secretKey, false) };
}

function recipientKeys(ephemeralPoint: Uint8Array, secretKey: Uint8Array): ClaimKeys {
  if (!isBytes(secretKey) || !p256.utils.isValidSecretKey(secretKey))
    throw new CairnlogError("invalid-key", "The recipient's secret key is not a P-256 scalar of 32 bytes.");
  return deriveKeys(secretKey, ephemeralPoint, ephemeralPoint, p256.getPublicKey(secretKey, false));
}

/**
 * @param theirs the point for ECDH with `secretKey`: the recipient's for the sender, the ephemeral one for the
 *   recipient
 */
function deriveKeys(
  secretKey: Uint8Array,
  theirs: Uint8Array,
  ephemeral: Uint8Array,
  recipient: Uint8Array,
): ClaimKeys {
  const x = p256.getSharedSecret(secretKey, theirs, false).subarray(1, 1 + KEY_BYTES);
  const salt = new Uint8Array(2 * POINT_BYTES);
  salt.set(ephemeral);
  salt.set(recipient, POINT_BYTES);
  const key = extract(sha256, x, salt);
  return {
    encryption: expand(sha256, key, ENCRYPTION_LABEL, KEY_BYTES),
    commitment: expand(sha256, key, COMMITMENT_LABEL, KEY_BYTES),
  };
}

/** The uncompressed point that ends a P-256 key's SPKI; the parser has checked that it is on the curve. */
function pointOf({ algorithm, der }: PublicKey): Uint8Array {
  if (algorithm !== "ecdsa-p256")
    throw new CairnlogError("invalid-key", `Claims are encrypted to P-256 keys; this one is ${algorithm}.`);
  return der.subarray(-POINT_BYTES);
}

function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array;
}

const decryptionFailed = (message: string) => new CairnlogError("decryption-failed", message);
