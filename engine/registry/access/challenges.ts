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
import type { SignatureVerifier } from "../../crypto/pool/pool.js";
import type { Log } from "../../log/log.js";
import { type Clock, formatTimestamp } from "../../log/state/clock.js";
import type { Writer } from "../../log/state/executor.js";
import {
  CHALLENGE_RANDOM_BYTES,
  type ChallengePurpose,
  challengeNonce,
  noncePrefix,
} from "../../verify/events/possession.js";
import { MAX_CHALLENGE_ID_CHARACTERS } from "../../verify/keys/contract.js";
import { keyNotActive } from "../events/keys.js";
import type { Keys } from "../keys/keys.js";
import { decodeSignature, invalidInput } from "../shared/input.js";
import { CHALLENGE_SECRET, keepChallengeSecret, useChallenge, usedChallenge } from "./commands.js";

// What a service remembers of challenges: those that were used, and those whose answers failed. There is one
// `ChallengeUses` for a log, in the thread of its writer, so it decides between answers that reach several front ends.
//
// A used challenge is a private row, written before anything is done on its strength. So neither a restart nor a takeover
// by another node makes its proof good again. Failures are in memory: to forget them lets somebody guess a signature five
// times more.

/** Failed signatures after which a challenge is taken no more. */
const MAX_FAILURES = 5;
/**
 * Challenges whose failures are counted. Anybody can make a challenge of any key fail. Beyond this number a further one is
 * not counted, and none is displaced: it may be answered more often than five times, and a signature cannot be guessed.
 */
const MAX_FAILED = 10_000;
/**
 * How long a used challenge is kept after its end, in microseconds. A clock that is set back by less does not make its proof
 * good again.
 */
const KEPT_AFTER_END = 3_600_000_000;
/** Rows that one use removes at most. More than one, so that their number falls again after many. */
const FORGOTTEN_AT_ONCE = 4;

/** How an answer to a challenge turned out. */
interface ChallengeOutcome {
  /** Random bytes of the challenge, in hex. */
  readonly id: string;
  /** Microseconds since the epoch. */
  readonly expires: number;
  /** Whether the signature was the key's. */
  readonly isValid: boolean;
}

interface Failed {
  count: number;
  /** When the challenge has expired for sure, in microseconds since the epoch. */
  readonly until: number;
}

export class ChallengeUses {
  readonly #log: Log;
  readonly #writer: Pick<Writer, "execute">;
  readonly #clock: Clock;
  readonly #lifetime: number;
  /** By id, oldest first. */
  readonly #failed = new Map<string, Failed>();
  /** The last used challenge that was given to be forgotten. */
  #forgotten: readonly [number, string] = [0, ""];

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly log: Log;
    readonly writer: Pick<Writer, "execute">;
    readonly clock: Clock;
    readonly ttlSeconds: number;
  }) {
    this.#log = parts.log;
    this.#writer = parts.writer;
    this.#clock = parts.clock;
    this.#lifetime = parts.ttlSeconds * 1_000_000;
  }

  /** Number of challenges whose failures are counted. */
  get failed(): number {
    return this.#failed.size;
  }

  /**
   * Takes note of an answer. Of several valid ones only the first succeeds. Resolves when the use is on disk.
   * @throws CairnlogError `challenge-used`; `not-found` after too many failures; `forbidden` for one that failed; and as
   *   `Log.execute` does
   */
  async settle({ id, expires, isValid }: ChallengeOutcome): Promise<void> {
    if (this.#log.row("usedChallenges", [expires, id])) throw usedChallenge();
    if ((this.#failed.get(id)?.count ?? 0) >= MAX_FAILURES) throw spentChallenge();
    if (!isValid) {
      this.#count(id);
      throw new CairnlogError("forbidden", "The signature is not the key's over the nonce of this challenge.");
    }
    await this.#writer.execute(useChallenge, { challenge: [expires, id], forgotten: this.#forget() });
  }

  #count(id: string): void {
    const failed = this.#failed.get(id);
    if (failed) {
      failed.count++;
      return;
    }
    const now = this.#clock();
    for (const [oldest, { until }] of this.#failed) {
      if (until > now) break;
      this.#failed.delete(oldest);
    }
    if (this.#failed.size < MAX_FAILED) this.#failed.set(id, { count: 1, until: now + this.#lifetime });
  }

  /** Some used challenges that ended long ago. Each is given once, however many uses are on their way to the disk. */
  #forget(): [number, string][] {
    const end = this.#clock() - KEPT_AFTER_END;
    const rows = this.#log.rows("usedChallenges", [...this.#forgotten, 0], [end], { limit: FORGOTTEN_AT_ONCE });
    const keys = rows.map(({ key }) => key);
    // What a failed write left in place is found in the next round.
    this.#forgotten = keys.at(-1) ?? [0, ""];
    return keys;
  }
}

/** The error for a challenge that this service did not issue, or that is taken no more. */
const spentChallenge = (): CairnlogError =>
  new CairnlogError(
    "not-found",
    "This service has no such challenge, or too many answers to it were wrong: ask for a new one.",
  );

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
// random bytes · 16 bytes that bind the nonce to its terms (`verify/events/possession.ts`) · 32 bytes of the act, or none · SHA-256
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
