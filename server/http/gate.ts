/**
 * The gate of every route that needs to know who is asking. Routes call it from `authorize`, before anything else of the
 * request is looked at, so that its refusals (401, 403, 404, 409, 410) go before faults of form (422).
 */
import Type from "typebox";
import type { OperatorKey } from "../../engine/crypto/keys/operator-key.js";
import { CairnlogError } from "../../engine/error.js";
import type { Challenges } from "../../engine/registry/access/challenges.js";
import type { Possession } from "../../engine/registry/attestations/attestations.js";
import { canonicalFingerprint } from "../../engine/registry/keys/events.js";
import type { Keys } from "../../engine/registry/keys/keys.js";
import { AuthProof, SignedChallenge } from "../wire/identity/auth.js";
import { checker } from "./input.js";
import { recoveryOnly, type Sessions } from "./sessions.js";
import type { Request } from "./transport/request.js";

/** No tree head and no token reads like this. */
const BEARER = /^Bearer\b/i;
const PROBE = Buffer.from("service.gate.probe.v1");

const checkAuth = checker(Type.Object({ auth: AuthProof }));
const checkSignedChallenge = checker(SignedChallenge);

/** Where a request stands before it is checked. */
interface Asking {
  readonly request: Pick<Request, "authorization">;
}

/** A key that the client has shown to hold. */
export interface Proof {
  /** As the registry writes it. */
  readonly fingerprint: string;
  /** Whether it was shown by a recovery challenge or session. */
  readonly recovery: boolean;
}

export interface ProofOptions {
  /** Whether a recovery challenge or session serves; it does for succession alone. */
  readonly allowRecovery?: boolean;
  /** Whether a challenge of a key that has ended since serves: then the route answers for the key's status. */
  readonly allowEnded?: boolean;
}

export class Gate {
  readonly #challenges: Challenges;
  readonly #sessions: Sessions;
  readonly #keys: Keys;
  readonly #operator: OperatorKey;

  constructor(parts: {
    readonly challenges: Challenges;
    readonly sessions: Sessions;
    readonly keys: Keys;
    readonly operator: OperatorKey;
  }) {
    this.#challenges = parts.challenges;
    this.#sessions = parts.sessions;
    this.#keys = parts.keys;
    this.#operator = parts.operator;
  }

  /**
   * The key behind a write: of the body's `auth` proof, or where there is none, of the Bearer session. A proof that was
   * made for this one write goes before a header that a client sends with everything.
   * @param body as it was parsed, unchecked
   * @throws CairnlogError `unauthenticated` with neither, and for a session that does not hold; for a proof as
   *   `Challenges.consume` does; `forbidden` for one by recovery where that does not serve; `invalid-input` for an
   *   `auth` of another form
   */
  async provenKey(asking: Asking, body: unknown, options: ProofOptions = {}): Promise<Proof> {
    const { allowRecovery = false, allowEnded = false } = options;
    const auth = isRecord(body) ? body.auth : undefined;
    if (auth === undefined || auth === null) return this.#session(asking, allowRecovery);
    checkAuth({ auth });
    const { challenge_id, challenge_signature, recovery = false } = auth as Type.Static<typeof AuthProof>;
    const purpose = recovery ? "recovery" : "general";
    return this.#challenges.consume({
      challengeId: challenge_id,
      signature: challenge_signature,
      purposes: recovery && !allowRecovery ? [] : [purpose],
      allowEnded,
    });
  }

  /**
   * As `provenKey`, for writes that need a proof in some cases only: null without one. A session that does not hold is
   * refused all the same; a header of another scheme than Bearer is none.
   * @throws CairnlogError as `provenKey` does
   */
  async shownKey(asking: Asking, body: unknown): Promise<Possession | null> {
    const isForThis = isRecord(body) && body.auth !== undefined && body.auth !== null;
    if (!isForThis && !BEARER.test(asking.request.authorization)) return null;
    const { fingerprint } = await this.provenKey(asking, body);
    return { fingerprint, isForThis };
  }

  /**
   * The key that answered the challenge at the top of a body: `challenge_id` and `challenge_signature`.
   * @throws CairnlogError as `Challenges.consume` does; `invalid-input` when either member is missing
   */
  async challengedKey(body: unknown): Promise<Proof> {
    checkSignedChallenge(body);
    const { challenge_id, challenge_signature } = body as Type.Static<typeof SignedChallenge>;
    const answer = { challengeId: challenge_id, signature: challenge_signature };
    return this.#challenges.consume({ ...answer, purposes: ["general"] });
  }

  /**
   * The key of the Bearer session, for routes that take nothing else.
   * @throws CairnlogError `unauthenticated`; `forbidden` for a recovery session
   */
  sessionKey(asking: Asking): Promise<Proof> {
    return this.#session(asking, false);
  }

  /**
   * Lets nobody pass but the operator, and him only while his key can be used.
   * @throws CairnlogError `unauthenticated` for a token that is missing, malformed or does not hold; `forbidden` when it
   *   is another key's; `signer-unavailable`
   */
  async operatorOnly(asking: Asking): Promise<Proof> {
    const proof = await this.#session(asking, false);
    if (proof.fingerprint !== this.#operator.fingerprint)
      throw new CairnlogError("forbidden", "This is for the operator alone.");
    // Every session is signed by the operator key: while its provider does not answer, who holds it cannot be known.
    try {
      await this.#operator.sign([PROBE]);
    } catch (cause) {
      throw new CairnlogError("signer-unavailable", "The operator key cannot be used at the moment.", { cause });
    }
    return proof;
  }

  /**
   * The fingerprint that a request names, in the registry's spelling, when it is the proven key's.
   * @throws CairnlogError `not-found` when no key has it; `forbidden` when it is another key's
   */
  own(proof: Proof, named: string): string {
    if (canonicalFingerprint(named) === proof.fingerprint) return proof.fingerprint;
    this.#keys.find(named);
    throw new CairnlogError("forbidden", `The proof is of the key ${proof.fingerprint}, not of the one named.`);
  }

  async #session({ request }: Asking, allowRecovery: boolean): Promise<Proof> {
    const { fingerprint, recovery } = await this.#sessions.read(request.authorization);
    if (recovery && !allowRecovery) throw recoveryOnly();
    return { fingerprint, recovery };
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
