/**
 * The form of encrypted claims: the payload of an `encrypted_claim` entry, and the rules for a new one. The server uses
 * this code too, so both sides accept the same payloads.
 */
import { p256 } from "@noble/curves/nist.js";
import { CairnlogError, type ErrorDetail, inputError } from "../../base/error.js";
import { decodeBase64, isHexHash, isPrefixedHash } from "../bytes/encoding.js";
import { isObject, type JsonObject } from "../json/shape.js";
import { MAX_CIPHERTEXT_BYTES } from "../keys/contract.js";

/** The only commitment that new claims may have: HMAC-SHA256 under a key that is derived from the ECDH secret. */
export const COMMITMENT_ALG = "hmac-sha256-ecdh-v1";
export { MAX_CIPHERTEXT_BYTES };
export const TAG_BYTES = 16;
export const NONCE_BYTES = 12;

/** A SEC 1 uncompressed point of P-256 (§2.3.3): 0x04 and two coordinates. */
const POINT_BYTES = 65;
/** The name that unkeyed commitments of older claims may have. They may also have none. */
const UNSALTED_ALG = "sha256";
const LOOKUP_KEY = /^[0-9a-f]{32,128}$/;

/** The payload of a claim. All of it is public. */
export interface ClaimPayload {
  readonly commitment_alg: typeof COMMITMENT_ALG;
  /** Base64 of a SEC 1 uncompressed P-256 point. */
  readonly ephemeral_public_key: string;
  /** Base64, 12 bytes. */
  readonly nonce: string;
  /** Base64, at most 256 KiB decoded: AES-256-GCM ciphertext, followed by its tag of 16 bytes. */
  readonly ciphertext: string;
  /** HMAC-SHA256 of the plaintext in canonical JSON, lower-case hex. */
  readonly commitment: string;
  /** 32 to 128 lower-case hex characters. Anybody who knows the lookup key can find the claim by it. */
  readonly lookup_key: string;
  /** Present only if the poster wants to name the recipient. */
  readonly recipient_fingerprint?: string;
}

/** A payload of the right form, and its decoded members. */
export interface CheckedClaim {
  /** The payload, with only the known members. */
  readonly payload: ClaimPayload;
  /** A point on the curve. */
  readonly ephemeralKey: Uint8Array;
  readonly nonce: Uint8Array;
  readonly ciphertext: Uint8Array;
}

/** The kind of commitment in a payload. */
export type CommitmentKind = "keyed" | "unsalted" | "unknown";

/**
 * The kind of a payload's commitment. `unsalted` payloads are older than keyed commitments: anybody who guesses their
 * plaintext can check the guess.
 */
export function commitmentKind(payload: JsonObject): CommitmentKind {
  const declared = Object.hasOwn(payload, "commitment_alg") ? payload.commitment_alg : UNSALTED_ALG;
  if (declared === COMMITMENT_ALG) return "keyed";
  return declared === UNSALTED_ALG ? "unsalted" : "unknown";
}

/**
 * Checks the form of a claim's payload, which may come from an attacker. The result does not contain unknown members.
 * @throws CairnlogError `unsupported-commitment`, before any other error, unless `commitment_alg` is the accepted one;
 *   `invalid-input` with every fault in `details` (JSON Pointers into the payload)
 */
export function readClaimPayload(value: unknown): CheckedClaim {
  if (!isObject(value)) throw invalidInput([{ path: "", message: "It must be an object." }]);
  if (commitmentKind(value) !== "keyed")
    throw new CairnlogError("unsupported-commitment", `A claim must declare commitment_alg as "${COMMITMENT_ALG}".`, {
      details: [{ path: "/commitment_alg", message: `It must be "${COMMITMENT_ALG}".` }],
    });
  const faults: ErrorDetail[] = [];
  const bytes = (name: string, what: string, fits: (decoded: Uint8Array) => boolean, limit: number) => {
    const text = value[name];
    // A text that is longer than the limit allows is not decoded.
    const isShort = typeof text === "string" && text.length <= base64Length(limit);
    const decoded = isShort ? decodeBase64(text) : undefined;
    if (decoded === undefined || !fits(decoded))
      faults.push({ path: `/${name}`, message: `It must be strict base64 of ${what}.` });
    return decoded!;
  };
  const text = (name: string, what: string, fits: (member: unknown) => boolean) => {
    if (!fits(value[name])) faults.push({ path: `/${name}`, message: `It must be ${what}.` });
    return value[name] as string;
  };

  const ephemeralKey = bytes("ephemeral_public_key", "an uncompressed P-256 point (65 bytes)", isPoint, POINT_BYTES);
  const nonce = bytes("nonce", `${NONCE_BYTES} bytes`, ({ length }) => length === NONCE_BYTES, NONCE_BYTES);
  const ciphertext = bytes(
    "ciphertext",
    `${TAG_BYTES + 1} to ${MAX_CIPHERTEXT_BYTES} bytes, the last ${TAG_BYTES} of them the tag`,
    ({ length }) => length > TAG_BYTES && length <= MAX_CIPHERTEXT_BYTES,
    MAX_CIPHERTEXT_BYTES,
  );
  const payload: ClaimPayload = {
    commitment_alg: COMMITMENT_ALG,
    ephemeral_public_key: value.ephemeral_public_key as string,
    nonce: value.nonce as string,
    ciphertext: value.ciphertext as string,
    commitment: text("commitment", "64 lower-case hexadecimal characters", isHexHash),
    lookup_key: text("lookup_key", "32 to 128 lower-case hexadecimal characters", isLookupKey),
  };
  const isNamed = value.recipient_fingerprint !== undefined;
  const recipient = isNamed && text("recipient_fingerprint", "a fingerprint: sha256: and 64 hex", isFingerprint);
  if (faults.length) throw invalidInput(faults);
  return {
    payload: recipient === false ? payload : { ...payload, recipient_fingerprint: recipient },
    ephemeralKey,
    nonce,
    ciphertext,
  };
}

/** Whether `value` has the form of a lookup key. */
export function isLookupKey(value: unknown): value is string {
  return typeof value === "string" && LOOKUP_KEY.test(value);
}

function isFingerprint(value: unknown): boolean {
  return isPrefixedHash(value);
}

/** SEC 1 §3.2.2.1: on the curve and not the point at infinity, which has no uncompressed form. Only one encoding. */
function isPoint(bytes: Uint8Array): boolean {
  if (bytes.length !== POINT_BYTES) return false;
  try {
    p256.Point.fromBytes(bytes);
    return true;
  } catch {
    return false;
  }
}

const base64Length = (bytes: number): number => Math.ceil(bytes / 3) * 4;

function invalidInput(details: readonly ErrorDetail[]): CairnlogError {
  const [first] = details;
  return inputError(`${first!.path || "The claim"}: ${first!.message}`, { details });
}
