/**
 * The `challenge_id` of a challenge: everything about it, authenticated by a secret of the log. So nothing is stored when a
 * challenge is issued, and whoever has the secret can read one that another thread or node issued.
 *
 * Layout (big-endian), in base64url: u8 form · u8 purpose · u64 expiry in microseconds · 32 bytes of the fingerprint · 16
 * random bytes · 16 bytes that bind the nonce to its terms (`verify/events/challenge.ts`) · 32 bytes of the act, or none · SHA-256
 * HMAC of all that.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { CHALLENGE_RANDOM_BYTES, type ChallengePurpose } from "../../verify/events/challenge.js";
import { MAX_CHALLENGE_ID_CHARACTERS } from "../../verify/keys/limits.js";

/** A challenge as its id tells it. */
export interface CarriedChallenge {
  readonly purpose: ChallengePurpose;
  /** Microseconds since the epoch. */
  readonly expires: number;
  /** In the registry's form. */
  readonly fingerprint: string;
  /** The bytes at the end of its nonce: the random ones, then those that are bound to its terms. */
  readonly bytes: Buffer;
  /** 64 hex characters; null for a challenge that is good for any request. */
  readonly act: string | null;
}

const FORM = 1;
const PURPOSES: readonly ChallengePurpose[] = ["login", "general", "recovery"];
const PREFIX = "sha256:";
const HASH = 32;
const EXPIRES_AT = 2;
const FINGERPRINT_AT = EXPIRES_AT + 8;
const BYTES_AT = FINGERPRINT_AT + HASH;
const ACT_AT = BYTES_AT + 2 * CHALLENGE_RANDOM_BYTES;
const LENGTHS: readonly number[] = [ACT_AT + HASH, ACT_AT + HASH + HASH];

const macOf = (secret: Uint8Array, content: Uint8Array): Buffer =>
  createHmac("sha256", secret).update(content).digest();

/** The id of a challenge. */
export function sealChallenge(secret: Uint8Array, challenge: CarriedChallenge): string {
  const head = Buffer.alloc(FINGERPRINT_AT);
  head[0] = FORM;
  head[1] = PURPOSES.indexOf(challenge.purpose);
  head.writeBigUInt64BE(BigInt(challenge.expires), EXPIRES_AT);
  const fingerprint = Buffer.from(challenge.fingerprint.slice(PREFIX.length), "hex");
  const act = Buffer.from(challenge.act ?? "", "hex");
  const content = Buffer.concat([head, fingerprint, challenge.bytes, act]);
  return Buffer.concat([content, macOf(secret, content)]).toString("base64url");
}

/** The challenge of an id that was made with this secret; undefined for any other text, which an attacker may choose. */
export function openChallenge(secret: Uint8Array, id: string): CarriedChallenge | undefined {
  // No id is longer, so a longer text need not be decoded.
  if (id.length > MAX_CHALLENGE_ID_CHARACTERS) return undefined;
  const sealed = Buffer.from(id, "base64url");
  if (!LENGTHS.includes(sealed.length)) return undefined;
  const content = sealed.subarray(0, -HASH);
  if (!timingSafeEqual(sealed.subarray(-HASH), macOf(secret, content)) || content[0] !== FORM) return undefined;
  return {
    purpose: PURPOSES[content[1]!]!,
    expires: Number(content.readBigUInt64BE(EXPIRES_AT)),
    fingerprint: PREFIX + content.toString("hex", FINGERPRINT_AT, BYTES_AT),
    bytes: content.subarray(BYTES_AT, ACT_AT),
    act: content.length > ACT_AT ? content.toString("hex", ACT_AT) : null,
  };
}
