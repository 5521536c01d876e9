/**
 * Authentication of requests. Routes call it from `authorize`, before anything else of the request is checked. Its
 * errors (401, 403, 404, 409, 410) therefore take precedence over errors of form (422).
 */
import Type from "typebox";
import { CairnlogError } from "../../engine/base/error.js";
import { AuthProof, SignedChallenge } from "../../engine/contract/identity/auth.js";
import type { OperatorKey } from "../../engine/crypto/signer/operator-key.js";
import type { Challenges } from "../../engine/registry/access/challenges.js";
import type { Possession } from "../../engine/registry/attestations/attestations.js";
import { canonicalFingerprint } from "../../engine/registry/events/keys.js";
import type { Keys } from "../../engine/registry/keys/keys.js";
import { requestAct } from "../../engine/verify/events/possession.js";
import { checker } from "./input.js";
import { readsOnly, recoveryOnly, type Sessions } from "./sessions.js";
import type { Request } from "./transport/request.js";

/** The beginning of an `Authorization` header with a session token. */
const BEARER = /^Bearer\b/i;
/** Seconds from its sign-in in which a session may replace or end its key. */
const FRESH_SESSION_S = 300;
const PROBE = Buffer.from("service.gate.probe.v1");

const checkAuth = checker(Type.Object({ auth: AuthProof }));
const checkSignedChallenge = checker(SignedChallenge);

/** A request before it is checked. */
export interface Asking {
  readonly request: Pick<Request, "authorization" | "method" | "params">;
  /** Of the route: `/api/v1/log/{entry_id}`. */
  readonly path: string;
}

/** A key whose possession the client has proven. */
export interface Proof {
  /** In the registry's form. */
  readonly fingerprint: string;
  /** Whether the proof was a recovery challenge or session. */
  readonly recovery: boolean;
  /** Present for a session that only reads. */
  readonly readOnly?: true;
}

interface ProofOptions {
  /** Whether a recovery challenge or session is accepted, as only succession does. */
  readonly allowRecovery?: boolean;
  /** Whether a challenge is accepted whose key has ended since. The route then has to check the key's status. */
  readonly allowEnded?: boolean;
  /**
   * Whether a session counts only for `FRESH_SESSION_S` seconds from its sign-in. For what replaces or ends a key: whoever
   * has stolen a token could take the key from its holder.
   */
  readonly freshSession?: boolean;
}

export class Gate {
  readonly #challenges: Pick<Challenges, "consume">;
  readonly #sessions: Sessions;
  readonly #keys: Keys;
  readonly #operator: OperatorKey;

  constructor(parts: {
    readonly challenges: Pick<Challenges, "consume">;
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
   * The key behind a write: the key of the body's `auth` proof or, without one, of the Bearer session. A proof was made
   * for this write alone, so it takes precedence over a header that a client sends with every request.
   * @param body as it was parsed, unchecked
   * @throws CairnlogError `unauthenticated` with neither, and for an invalid session; for a proof as
   *   `Challenges.consume` does; `forbidden` for a proof by recovery where that is not accepted; `invalid-input` for an
   *   `auth` of another form; `proof-required` for a session that is too old where it must be fresh
   */
  async provenKey(asking: Asking, body: unknown, options: ProofOptions = {}): Promise<Proof> {
    const { allowRecovery = false, allowEnded = false } = options;
    const auth = isRecord(body) ? body.auth : undefined;
    if (!isRecord(body) || auth === undefined || auth === null) return this.#session(asking, options);
    checkAuth({ auth });
    const { challenge_id, challenge_signature, recovery = false } = auth as Type.Static<typeof AuthProof>;
    const purpose = recovery ? "recovery" : "general";
    return this.#challenges.consume({
      challengeId: challenge_id,
      signature: challenge_signature,
      purposes: recovery && !allowRecovery ? [] : [purpose],
      allowEnded,
      act: () => actOf(asking, body),
    });
  }

  /**
   * The key behind a write that needs a proof only in some cases; null, at once, without a proof. An invalid session is
   * still refused. A header of another scheme than Bearer is ignored.
   * @throws CairnlogError as `provenKey` does
   */
  shownKey(asking: Asking, body: unknown): Promise<Possession | null> | null {
    const isForThis = isRecord(body) && body.auth !== undefined && body.auth !== null;
    if (!isForThis && !BEARER.test(asking.request.authorization)) return null;
    return this.provenKey(asking, body).then(({ fingerprint }) => ({ fingerprint, isForThis }));
  }

  /**
   * The key that answered the challenge at the top of a body: `challenge_id` and `challenge_signature`.
   * @throws CairnlogError as `Challenges.consume` does; `invalid-input` when either member is missing
   */
  async challengedKey(asking: Asking, body: unknown): Promise<Proof> {
    checkSignedChallenge(body);
    const signed = body as Type.Static<typeof SignedChallenge>;
    const answer = { challengeId: signed.challenge_id, signature: signed.challenge_signature };
    return this.#challenges.consume({ ...answer, purposes: ["general"], act: () => actOf(asking, signed) });
  }

  /**
   * The key of the Bearer session, for routes that accept only sessions.
   * @throws CairnlogError `unauthenticated`; `forbidden` for a recovery session
   */
  sessionKey(asking: Asking): Promise<Proof> {
    return this.#session(asking, {});
  }

  /**
   * Accepts only the operator, and only while the operator key can be used.
   * @throws CairnlogError `unauthenticated` for a missing, malformed or invalid token; `forbidden` when it is another
   *   key's; `signer-unavailable`
   */
  async operatorOnly(asking: Asking): Promise<Proof> {
    const proof = await this.#session(asking, {});
    if (proof.fingerprint !== this.#operator.fingerprint)
      throw new CairnlogError("forbidden", "This is for the operator alone.");
    // The operator key signs every session. While its provider does not answer, sessions cannot be trusted.
    try {
      await this.#operator.sign([PROBE]);
    } catch (cause) {
      throw new CairnlogError("signer-unavailable", "The operator key cannot be used at the moment.", { cause });
    }
    return proof;
  }

  /**
   * The fingerprint that a request names, in the registry's form. It must be the proven key's.
   * @throws CairnlogError `not-found` when no key has it; `forbidden` when it is another key's
   */
  own(proof: Proof, named: string): string {
    if (canonicalFingerprint(named) === proof.fingerprint) return proof.fingerprint;
    this.#keys.find(named);
    throw new CairnlogError("forbidden", `The proof is of the key ${proof.fingerprint}, not of the one named.`);
  }

  async #session({ request }: Asking, { allowRecovery, freshSession }: ProofOptions): Promise<Proof> {
    const session = await this.#sessions.read(request.authorization);
    const { fingerprint, recovery, readOnly } = session;
    if (recovery && !allowRecovery) throw recoveryOnly();
    if (readOnly && request.method !== "GET" && request.method !== "HEAD") throw readsOnly();
    if (freshSession && this.#sessions.age(session) > FRESH_SESSION_S)
      throw new CairnlogError(
        "proof-required",
        `This takes a proof (\`auth\`), or a session that began at most ${FRESH_SESSION_S} seconds ago: a stolen token must not replace or end a key.`,
      );
    return { fingerprint, recovery, ...(readOnly && { readOnly }) };
  }
}

/** The act of a request (`requestAct`). */
function actOf({ request, path }: Asking, body: Readonly<Record<string, unknown>>): string {
  let next = 0;
  const sent = path.replace(/\{\w+\}/g, () => request.params[next++] ?? "");
  return requestAct(request.method, sent, body);
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
