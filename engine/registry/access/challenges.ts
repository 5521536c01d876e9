/**
 * Challenges: a client signs a nonce to prove that it holds a key (docs/spec §5.1). Anybody may ask for
 * challenges for any key. Issuing one stores nothing: its id carries it. What must be remembered about
 * answers is in `ChallengeUses`, which belongs to the writer's thread; each front end has `Challenges` of its own.
 */

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { CairnlogError } from "../../base/error.js";
import type * as contract from "../../contract/identity/auth.js";
import type { Value } from "../../contract/types.js";
import { importPublicKey } from "../../crypto/keys/spki.js";
import type { SignatureVerifier } from "../../crypto/pool/verifier.js";
import type { Log } from "../../log/log.js";
import { type Clock, formatTimestamp } from "../../log/state/clock.js";
import type { Writer } from "../../log/state/executor.js";
import {
  CHALLENGE_RANDOM_BYTES,
  type ChallengePurpose,
  challengeNonce,
  noncePrefix,
} from "../../verify/events/challenge.js";
import { MAX_CHALLENGE_ID_CHARACTERS } from "../../verify/keys/limits.js";
import { keyNotActive } from "../events/keys.js";
import type { Keys } from "../keys/keys.js";
import { decodeSignature, invalidInput } from "../shared/input.js";
import { type ChallengeUses, spentChallenge } from "./challengeuses.js";
import { CHALLENGE_SECRET, keepChallengeSecret } from "./commands.js";

export const DEFAULT_CHALLENGE_TTL_S = 300;
const SECRET_BYTES = 32;

type Challenge = Value<typeof contract.Challenge>;

type ChallengeRequest = Value<typeof contract.ChallengeRequest> & {
  /** Under which of its names the service was asked. */
  readonly origin: string;
};

export interface ChallengeAnswer {
  readonly challengeId: string;
  /** Base64 signature over the nonce. */
  readonly signature: string;
  /** The key that the challenge must have been made for. Any key, if absent. */
  readonly fingerprint?: string;
  /** The accepted purposes of the challenge. */
  readonly purposes: readonly ChallengePurpose[];
  /** Whether a key that has ended since the challenge is accepted. The caller then has to check the key's status. */
  readonly allowEnded?: boolean;
  /**
   * The act of the request that the proof came with (`requestAct`). It is only computed for a challenge that names one.
   * Absent where a challenge with an act proves nothing.
   */
  readonly act?: () => string;
}

/** The key that a consumed challenge proves. */
interface ProvenChallenge {
  readonly fingerprint: string;
  readonly recovery: boolean;
}

interface Parts {
  readonly log: Log;
  readonly writer: Pick<Writer, "execute">;
  readonly keys: Pick<Keys, "find">;
  readonly verifier: Pick<SignatureVerifier, "verify">;
  readonly uses: Pick<ChallengeUses, "settle">;
  readonly clock: Clock;
  readonly ttlSeconds: number;
}

export class Challenges {
  readonly #parts: Parts;
  readonly #lifetime: number;
  /** It is made once for a log and never changes. */
  #secret: Uint8Array | undefined;

  /** Use `openRegistry`. */
  constructor(parts: Parts) {
    this.#parts = parts;
    this.#lifetime = parts.ttlSeconds * 1_000_000;
  }

  /**
   * Makes a challenge (`POST /auth/challenge`).
   * @throws CairnlogError `not-found`; `key-not-active` for a key that has ended, and for an expired one without
   *   `recovery`; `invalid-input` for an act of a sign-in; `wrong-key-status` for recovery of a key that is not expired; for the first one of a log also as
   *   `Log.execute` does
   */
  async issue(request: ChallengeRequest): Promise<Challenge> {
    const { recovery = false, purpose = "general", act = null, origin } = request;
    if (act !== null && purpose === "login" && !recovery)
      throw invalidInput("/act", "A challenge of the purpose login is for signing in, so it has no act.");
    const key = this.#parts.keys.find(request.fingerprint);
    const { fingerprint, status } = key;
    if (recovery && status === "active")
      throw new CairnlogError("wrong-key-status", "The key is active, so there is nothing to recover.");
    if (status !== (recovery ? "expired" : "active")) throw keyNotActive(fingerprint, key);
    const secret = this.#keptSecret() ?? (await this.#makeSecret());
    const terms = { origin, purpose: recovery ? "recovery" : purpose, fingerprint, act } as const;
    const nonce = challengeNonce(terms, randomBytes(CHALLENGE_RANDOM_BYTES));
    const expires = this.#parts.clock() + this.#lifetime;
    const challenge_id = sealChallenge(secret, { ...terms, expires, bytes: bytesOf(nonce) });
    return { challenge_id, nonce, expires_at: formatTimestamp(expires), origin, act: terms.act };
  }

  /**
   * Takes a signed challenge as proof of its key. Only a valid signature uses up the challenge, and that is on disk when
   * this resolves. If several valid answers arrive at once, only one of them succeeds.
   * @throws CairnlogError `not-found` for a challenge that is not of this log; `gone` when it has expired; `forbidden` for
   *   another key's challenge, or one made for another purpose or another request; `key-not-active` when the key had ended when the answer
   *   came; and as `ChallengeUses.settle` does
   */
  async consume(answer: ChallengeAnswer): Promise<ProvenChallenge> {
    const { challengeId, signature, fingerprint, purposes, allowEnded = false } = answer;
    const secret = this.#keptSecret();
    const challenge = secret && openChallenge(secret, challengeId);
    if (!challenge) throw spentChallenge();
    if (challenge.expires <= this.#parts.clock())
      throw new CairnlogError("gone", "The challenge has expired. Ask for a new one.");
    if (fingerprint !== undefined && fingerprint !== challenge.fingerprint)
      throw new CairnlogError("forbidden", "The challenge was made for another key.");
    if (!purposes.includes(challenge.purpose))
      throw new CairnlogError("forbidden", `A challenge of the purpose "${challenge.purpose}" proves nothing here.`);

    const record = this.#parts.keys.find(challenge.fingerprint);
    const signed = decodeSignature(signature);
    const nonce = Buffer.from(nonceOf(challenge));
    const isValid =
      signed !== undefined && (await this.#parts.verifier.verify(importPublicKey(record.public_key), nonce, signed));
    // The challenge stays good for the request that it names.
    if (isValid && challenge.act !== null && challenge.act !== answer.act?.())
      throw new CairnlogError("forbidden", "The challenge was made for another request than this one.");
    const id = challenge.bytes.toString("hex", 0, CHALLENGE_RANDOM_BYTES);
    await this.#parts.uses.settle({ id, expires: challenge.expires, isValid });
    const recovery = challenge.purpose === "recovery";
    if (!allowEnded && record.status !== (recovery ? "expired" : "active"))
      throw keyNotActive(challenge.fingerprint, record);
    return { fingerprint: challenge.fingerprint, recovery };
  }

  #keptSecret(): Uint8Array | undefined {
    this.#secret ??= this.#parts.log.row("secrets", CHALLENGE_SECRET)?.secret;
    return this.#secret;
  }

  async #makeSecret(): Promise<Uint8Array> {
    const { value } = await this.#parts.writer.execute(keepChallengeSecret, { secret: randomBytes(SECRET_BYTES) });
    this.#secret = value;
    return value;
  }
}

/** The bytes at the end of a nonce. */
const bytesOf = (nonce: string): Buffer => Buffer.from(nonce.slice(nonce.lastIndexOf(":") + 1), "base64url");

const nonceOf = ({ purpose, fingerprint, bytes }: CarriedChallenge): string =>
  noncePrefix(purpose, fingerprint) + bytes.toString("base64url");

// The `challenge_id` of a challenge: everything about it, authenticated by a secret of the log. So nothing is stored when a
// challenge is issued, and whoever has the secret can read one that another thread or node issued.
//
// Layout (big-endian), in base64url: u8 form · u8 purpose · u64 expiry in microseconds · 32 bytes of the fingerprint · 16
// random bytes · 16 bytes that bind the nonce to its terms (`verify/events/challenge.ts`) · 32 bytes of the act, or none · SHA-256
// HMAC of all that.

/** A challenge as its id tells it. */
interface CarriedChallenge {
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
function sealChallenge(secret: Uint8Array, challenge: CarriedChallenge): string {
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
function openChallenge(secret: Uint8Array, id: string): CarriedChallenge | undefined {
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
