/**
 * Challenges: a client signs a nonce to prove that it holds a key (`spec.md`, States, Challenge). They are kept in
 * memory, so asking for one costs no write, and a restart forgets them. Anybody may ask for challenges for any key.
 * Their number is therefore limited for each key and in total; the oldest are dropped first. An expired challenge is
 * kept for one more lifetime, so that a late answer gets another error than an answer to an unknown challenge. The
 * registry has one `Challenges`, which belongs to the thread that opened the registry.
 */

import { randomBytes, randomUUID } from "node:crypto";
import type { OperatorKey } from "../../crypto/keys/operator-key.js";
import { importPublicKey, type ServerKey } from "../../crypto/keys/spki.js";
import type { SignatureVerifier } from "../../crypto/pool/verifier.js";
import { CairnlogError } from "../../error.js";
import { type Clock, formatTimestamp } from "../../log/clock.js";
import { ownText } from "../../own-text.js";
import { type ChallengePurpose, noncePrefix } from "../../verify/contract.js";
import { decodeSignature } from "../input.js";
import type { Keys } from "../keys/keys.js";
import { keyNotActive } from "../keys/status.js";

export const DEFAULT_CHALLENGE_TTL_S = 300;
export const MAX_CHALLENGES = 100_000;
export const MAX_CHALLENGES_PER_KEY = 32;
/** Failed signatures after which a challenge is dropped. */
const MAX_FAILURES = 5;
const SECRET_BYTES = 32;
const SIGNATURE_BYTES = 64;

/** A challenge as its client sees it. */
export interface Challenge {
  readonly challenge_id: string;
  /** `service.auth.v1:<purpose>:<fingerprint>:<43 base64url characters>`. The client signs its UTF-8 bytes. */
  readonly nonce: string;
  readonly expires_at: string;
}

export interface ChallengeRequest {
  readonly fingerprint: string;
  /** Asks for a challenge for an expired key. `purpose` is then ignored. */
  readonly recovery?: boolean;
  readonly purpose?: "login" | "general";
}

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
}

/** The key that a consumed challenge proves. */
export interface ProvenChallenge {
  readonly fingerprint: string;
  readonly recovery: boolean;
}

/** The challenges of a service, wherever they are kept. */
export interface ChallengeService {
  issue(request: ChallengeRequest): Challenge | Promise<Challenge>;
  consume(answer: ChallengeAnswer): Promise<ProvenChallenge>;
}

interface Issued {
  readonly id: string;
  readonly fingerprint: string;
  readonly purpose: ChallengePurpose;
  readonly secret: string;
  /** Microseconds since the epoch. */
  readonly expires: number;
  isUsed: boolean;
  failures: number;
}

export class Challenges implements ChallengeService {
  readonly #keys: Pick<Keys, "find">;
  readonly #verifier: Pick<SignatureVerifier, "verify">;
  readonly #decoy: ServerKey;
  readonly #clock: Clock;
  readonly #lifetime: number;
  /** All challenges by id, oldest first. */
  readonly #issued = new Map<string, Issued>();
  /**
   * One iterator over `#issued`, which is never restarted. A new iterator would have to skip the entries that were
   * deleted at the front, which took 20 µs each time with 100,000 challenges.
   */
  readonly #walk = this.#issued.values();
  #oldest: Issued | undefined;
  /** The challenges of each key by fingerprint, oldest first. */
  readonly #byKey = new Map<string, Set<Issued>>();

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly keys: Pick<Keys, "find">;
    readonly verifier: Pick<SignatureVerifier, "verify">;
    readonly operator: Pick<OperatorKey, "public">;
    readonly clock: Clock;
    readonly ttlSeconds: number;
  }) {
    this.#keys = parts.keys;
    this.#verifier = parts.verifier;
    this.#decoy = parts.operator.public;
    this.#clock = parts.clock;
    this.#lifetime = parts.ttlSeconds * 1_000_000;
  }

  /** Number of challenges held, including used ones and some expired ones. */
  get size(): number {
    return this.#issued.size;
  }

  /**
   * Makes a challenge (`POST /auth/challenge`).
   * @throws CairnlogError `not-found`; `key-not-active` for a key that has ended, and for an expired one without
   *   `recovery`; `wrong-key-status` for recovery of a key that is not expired
   */
  issue({ fingerprint: named, recovery = false, purpose = "general" }: ChallengeRequest): Challenge {
    const { fingerprint, status } = this.#keys.find(named);
    if (recovery && status === "active")
      throw new CairnlogError("wrong-key-status", "The key is active, so there is nothing to recover.");
    if (status !== (recovery ? "expired" : "active")) throw keyNotActive(fingerprint, status);
    const issued: Issued = {
      id: ownText(randomUUID()),
      fingerprint: ownText(fingerprint),
      purpose: recovery ? "recovery" : purpose,
      secret: randomBytes(SECRET_BYTES).toString("base64url"),
      expires: this.#clock() + this.#lifetime,
      isUsed: false,
      failures: 0,
    };
    this.#add(issued);
    return { challenge_id: issued.id, nonce: nonceOf(issued), expires_at: formatTimestamp(issued.expires) };
  }

  /**
   * Takes a signed challenge as proof of its key. Only a valid signature uses up the challenge. If several valid
   * answers arrive at once, only one of them succeeds.
   * @throws CairnlogError `not-found`; `challenge-used`; `gone` when it has expired; `forbidden` for a signature that
   *   does not verify, another key's challenge, or one made for another purpose; `key-not-active` when the key had
   *   ended when the answer came
   */
  async consume({
    challengeId,
    signature,
    fingerprint,
    purposes,
    allowEnded = false,
  }: ChallengeAnswer): Promise<ProvenChallenge> {
    const signed = decodeSignature(signature);
    const challenge = this.#issued.get(challengeId);
    if (!challenge) {
      // This takes as long as for an existing challenge, so that the time does not reveal which challenges exist.
      await this.#verifier.verify(this.#decoy, randomBytes(SIGNATURE_BYTES), signed ?? new Uint8Array(SIGNATURE_BYTES));
      throw unknownChallenge();
    }
    if (challenge.isUsed) throw usedChallenge();
    if (challenge.expires <= this.#clock())
      throw new CairnlogError("gone", "The challenge has expired. Ask for a new one.");
    if (fingerprint !== undefined && fingerprint !== challenge.fingerprint)
      throw new CairnlogError("forbidden", "The challenge was made for another key.");
    if (!purposes.includes(challenge.purpose))
      throw new CairnlogError("forbidden", `A challenge of the purpose "${challenge.purpose}" proves nothing here.`);

    const { public_key, status } = this.#keys.find(challenge.fingerprint);
    const key = importPublicKey(public_key);
    const isValid = signed !== undefined && (await this.#verifier.verify(key, Buffer.from(nonceOf(challenge)), signed));
    // Another answer to the same challenge may have been accepted while this one was verified.
    if (challenge.isUsed) throw usedChallenge();
    if (this.#issued.get(challengeId) !== challenge) throw unknownChallenge();
    if (!isValid) {
      challenge.failures++;
      if (challenge.failures >= MAX_FAILURES) this.#drop(challenge);
      throw new CairnlogError("forbidden", "The signature is not the key's over the nonce of this challenge.");
    }
    challenge.isUsed = true;
    const recovery = challenge.purpose === "recovery";
    if (!allowEnded && status !== (recovery ? "expired" : "active")) throw keyNotActive(challenge.fingerprint, status);
    return { fingerprint: challenge.fingerprint, recovery };
  }

  #add(issued: Issued): void {
    const gone = this.#clock() - this.#lifetime;
    while (this.#issued.size && this.#first().expires <= gone) this.#drop(this.#first());
    const own = this.#byKey.get(issued.fingerprint) ?? new Set();
    const [oldestOfKey] = own;
    if (oldestOfKey && own.size >= MAX_CHALLENGES_PER_KEY) this.#drop(oldestOfKey);
    else if (this.#issued.size >= MAX_CHALLENGES) this.#drop(this.#first());
    this.#issued.set(issued.id, issued);
    // `#drop` may have removed this key's set, so it is set again.
    this.#byKey.set(issued.fingerprint, own.add(issued));
  }

  /** The oldest challenge. There must be one. The iterator has then not ended, and it never will. */
  #first(): Issued {
    while (!this.#oldest || this.#issued.get(this.#oldest.id) !== this.#oldest) this.#oldest = this.#walk.next().value!;
    return this.#oldest;
  }

  #drop(challenge: Issued): void {
    this.#issued.delete(challenge.id);
    const own = this.#byKey.get(challenge.fingerprint)!;
    own.delete(challenge);
    if (!own.size) this.#byKey.delete(challenge.fingerprint);
  }
}

const nonceOf = ({ purpose, fingerprint, secret }: Issued): string => noncePrefix(purpose, fingerprint) + secret;

const unknownChallenge = () =>
  new CairnlogError(
    "not-found",
    "There is no such challenge. It may have been displaced or dropped: ask for a new one.",
  );

const usedChallenge = () =>
  new CairnlogError("challenge-used", "The challenge has been used already. Ask for a new one.");
