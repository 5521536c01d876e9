/**
 * Challenges: a client signs a nonce to prove that it holds a key (docs/spec §5.1). Anybody may ask for
 * challenges for any key. Issuing one stores nothing: its id carries it (`challengetoken.ts`). What must be remembered about
 * answers is in `ChallengeUses`, which belongs to the writer's thread; each front end has `Challenges` of its own.
 */

import { randomBytes } from "node:crypto";
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
import { keyNotActive } from "../events/status.js";
import type { Keys } from "../keys/keys.js";
import { decodeSignature, invalidInput } from "../shared/input.js";
import { type CarriedChallenge, openChallenge, sealChallenge } from "./challengetoken.js";
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

export class Challenges {
  readonly #log: Log;
  readonly #writer: Pick<Writer, "execute">;
  readonly #keys: Pick<Keys, "find">;
  readonly #verifier: Pick<SignatureVerifier, "verify">;
  readonly #uses: Pick<ChallengeUses, "settle">;
  readonly #clock: Clock;
  readonly #lifetime: number;
  /** It is made once for a log and never changes. */
  #secret: Uint8Array | undefined;

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly log: Log;
    readonly writer: Pick<Writer, "execute">;
    readonly keys: Pick<Keys, "find">;
    readonly verifier: Pick<SignatureVerifier, "verify">;
    readonly uses: Pick<ChallengeUses, "settle">;
    readonly clock: Clock;
    readonly ttlSeconds: number;
  }) {
    this.#log = parts.log;
    this.#writer = parts.writer;
    this.#keys = parts.keys;
    this.#verifier = parts.verifier;
    this.#uses = parts.uses;
    this.#clock = parts.clock;
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
    const key = this.#keys.find(request.fingerprint);
    const { fingerprint, status } = key;
    if (recovery && status === "active")
      throw new CairnlogError("wrong-key-status", "The key is active, so there is nothing to recover.");
    if (status !== (recovery ? "expired" : "active")) throw keyNotActive(fingerprint, key);
    const secret = this.#keptSecret() ?? (await this.#makeSecret());
    const terms = { origin, purpose: recovery ? "recovery" : purpose, fingerprint, act } as const;
    const nonce = challengeNonce(terms, randomBytes(CHALLENGE_RANDOM_BYTES));
    const expires = this.#clock() + this.#lifetime;
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
    if (challenge.expires <= this.#clock())
      throw new CairnlogError("gone", "The challenge has expired. Ask for a new one.");
    if (fingerprint !== undefined && fingerprint !== challenge.fingerprint)
      throw new CairnlogError("forbidden", "The challenge was made for another key.");
    if (!purposes.includes(challenge.purpose))
      throw new CairnlogError("forbidden", `A challenge of the purpose "${challenge.purpose}" proves nothing here.`);

    const record = this.#keys.find(challenge.fingerprint);
    const signed = decodeSignature(signature);
    const nonce = Buffer.from(nonceOf(challenge));
    const isValid =
      signed !== undefined && (await this.#verifier.verify(importPublicKey(record.public_key), nonce, signed));
    // The challenge stays good for the request that it names.
    if (isValid && challenge.act !== null && challenge.act !== answer.act?.())
      throw new CairnlogError("forbidden", "The challenge was made for another request than this one.");
    const id = challenge.bytes.toString("hex", 0, CHALLENGE_RANDOM_BYTES);
    await this.#uses.settle({ id, expires: challenge.expires, isValid });
    const recovery = challenge.purpose === "recovery";
    if (!allowEnded && record.status !== (recovery ? "expired" : "active"))
      throw keyNotActive(challenge.fingerprint, record);
    return { fingerprint: challenge.fingerprint, recovery };
  }

  #keptSecret(): Uint8Array | undefined {
    this.#secret ??= this.#log.row("secrets", CHALLENGE_SECRET)?.secret;
    return this.#secret;
  }

  async #makeSecret(): Promise<Uint8Array> {
    const { value } = await this.#writer.execute(keepChallengeSecret, { secret: randomBytes(SECRET_BYTES) });
    this.#secret = value;
    return value;
  }
}

/** The bytes at the end of a nonce. */
const bytesOf = (nonce: string): Buffer => Buffer.from(nonce.slice(nonce.lastIndexOf(":") + 1), "base64url");

const nonceOf = ({ purpose, fingerprint, bytes }: CarriedChallenge): string =>
  noncePrefix(purpose, fingerprint) + bytes.toString("base64url");
