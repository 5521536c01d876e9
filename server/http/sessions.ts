/**
 * Sessions: JSON Web Tokens (RFC 7519) that the operator key signs and nobody stores. The claims of a token were true
 * when it was signed. The status of its key is checked at every use, so a key's sessions end with the key. The service
 * has one `Sessions`, which remembers verified tokens and belongs to the thread that serves HTTP.
 */
import { createPublicKey, type KeyObject } from "node:crypto";
import type { JWTPayload } from "jose";
// Not from "jose", which loads its encryption, too: half of the CPU that loading takes.
import { jwtVerify } from "jose/jwt/verify";
import { CairnlogError } from "../../engine/base/error.js";
import { Recent } from "../../engine/base/recent.js";
import type * as contract from "../../engine/contract/identity/auth.js";
import type { Value } from "../../engine/contract/types.js";
import type { OperatorKey } from "../../engine/crypto/signer/operator-key.js";
import { type Clock, formatTimestamp, systemClock } from "../../engine/log/state/clock.js";
import type { Passwords } from "../../engine/registry/access/passwords.js";
import { JWS_ALGORITHMS, signedToken } from "../../engine/registry/access/session-token.js";
import { statusWords } from "../../engine/registry/events/keys.js";
import type { Keys } from "../../engine/registry/keys/keys.js";

/** Seconds after sign-in when a session ends, no matter how often it was renewed. */
const MAX_SESSION_AGE_S = 86_400;
/** Maximum number of verified tokens that are remembered; about 10 MB. */
const MAX_CACHED = 10_000;
const MICROS = 1_000_000;
const BEARER = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i;

/** A session with a valid token and an active key. */
interface Session {
  readonly fingerprint: string;
  /** Whether it came from a recovery challenge. It is then good only for succession. */
  readonly recovery: boolean;
  /** When the challenge was answered, in seconds since the epoch. */
  readonly authTime: number;
  /**
   * `Passwords.version` at its beginning; undefined when the key had no password. It says that the sign-in took the
   * password: a session that began without the password that its key has now is not valid.
   */
  readonly passwordVersion: string | undefined;
  /** Whether it is good for GET alone. The operator made it with the operator key, not by signing in. */
  readonly readOnly: boolean;
}

type LoginResult = Value<typeof contract.LoginResult>;

interface Verified extends Session {
  /** Seconds since the epoch. */
  readonly expires: number;
}

interface SessionsOptions {
  readonly operator: OperatorKey;
  readonly keys: Keys;
  readonly passwords: Pick<Passwords, "version">;
  readonly ttlSeconds: number;
  readonly clock?: Clock;
}

export class Sessions {
  readonly #operator: OperatorKey;
  readonly #verifyingKey: KeyObject;
  readonly #keys: Keys;
  readonly #passwords: Pick<Passwords, "version">;
  readonly #ttl: number;
  readonly #clock: Clock;
  /** Verified sessions by token. Only valid tokens are added, so nobody can fill it with invented ones. */
  readonly #verified = new Recent<string, Verified>(MAX_CACHED);

  constructor({ operator, keys, passwords, ttlSeconds, clock = systemClock }: SessionsOptions) {
    this.#operator = operator;
    this.#verifyingKey = createPublicKey(operator.public.pem);
    this.#keys = keys;
    this.#passwords = passwords;
    this.#ttl = ttlSeconds;
    this.#clock = clock;
  }

  /**
   * Begins a session of a key that has just answered a challenge (`POST /auth/login`).
   * @param passwordVersion `Passwords.version` before the password was checked, so that a password that was set
   *   meanwhile ends the session
   * @throws CairnlogError `signer-unavailable`
   */
  open(fingerprint: string, recovery: boolean, passwordVersion: string | undefined): Promise<LoginResult> {
    return this.#issue({ fingerprint, recovery, authTime: this.#now(), passwordVersion, readOnly: false });
  }

  /**
   * A new token for the session in an `Authorization` header (`POST /auth/renew`). It never extends a session beyond 24
   * hours from sign-in.
   * @throws CairnlogError `unauthenticated`; `forbidden` for a recovery session and one that only reads; `signer-unavailable`
   */
  async renew(authorization: string): Promise<LoginResult> {
    const session = await this.read(authorization);
    if (session.recovery) throw recoveryOnly();
    if (session.readOnly) throw readsOnly();
    return this.#issue(session);
  }

  /**
   * The session in an `Authorization` header, which may come from an attacker.
   * @throws CairnlogError `unauthenticated` when there is no token, when it is invalid, or when its key or the key's
   *   password has changed
   */
  async read(authorization: string): Promise<Session> {
    const token = BEARER.exec(authorization)?.[1];
    if (token === undefined)
      throw new CairnlogError("unauthenticated", "Send a session token as `Authorization: Bearer <token>`.");
    const session = this.#remembered(token) ?? (await this.#verify(token));
    const key = this.#keys.lookup(session.fingerprint);
    if (key?.status !== (session.recovery ? "expired" : "active")) {
      const words = key ? statusWords(key) : "unknown";
      throw new CairnlogError("unauthenticated", `The session has ended: its key is ${words}.`);
    }
    // A token that only reads was made without a password, by whoever holds the operator key itself.
    if (!session.readOnly && this.#passwords.version(session.fingerprint) !== session.passwordVersion)
      throw new CairnlogError(
        "unauthenticated",
        "The session has ended: a password was set or changed since it began.",
      );
    return session;
  }

  /** Seconds since the sign-in, however often the session was renewed since. */
  age({ authTime }: Session): number {
    return this.#now() - authTime;
  }

  async #issue({ fingerprint, recovery, authTime, passwordVersion }: Session): Promise<LoginResult> {
    const { pseudonym } = this.#keys.find(fingerprint);
    const iat = this.#now();
    const exp = Math.min(iat + this.#ttl, authTime + MAX_SESSION_AGE_S);
    const claims = { pseudonym, recovery, auth_time: authTime, password_version: passwordVersion };
    const token = await signedToken(this.#operator, { sub: fingerprint, iat, exp, ...claims });
    return { token, fingerprint, pseudonym, expires_at: formatTimestamp(exp * MICROS) };
  }

  #remembered(token: string): Verified | undefined {
    const session = this.#verified.get(token);
    if (!session || session.expires > this.#now()) return session;
    this.#verified.delete(token);
    return undefined;
  }

  /**
   * Only the operator key's algorithm is accepted. The token cannot choose: `none` and HMAC with the public key fail
   * here.
   */
  async #verify(token: string): Promise<Verified> {
    const { algorithm } = this.#operator.public;
    let payload: JWTPayload;
    try {
      ({ payload } = await jwtVerify(token, this.#verifyingKey, {
        algorithms: [JWS_ALGORITHMS[algorithm]],
        issuer: this.#operator.fingerprint,
        typ: "JWT",
        requiredClaims: ["sub", "iat", "exp", "jti"],
        currentDate: new Date(this.#now() * 1000),
      }));
    } catch (cause) {
      throw new CairnlogError("unauthenticated", "The session token does not hold, or has expired.", { cause });
    }
    const { sub, exp, recovery, auth_time, password_version, read_only } = payload;
    if (typeof recovery !== "boolean" || typeof auth_time !== "number")
      throw new CairnlogError("unauthenticated", "The token is not that of a session.");
    const passwordVersion = password_version as string | undefined;
    const readOnly = read_only === true;
    const session = { fingerprint: sub!, recovery, authTime: auth_time, passwordVersion, readOnly, expires: exp! };
    this.#verified.set(token, session);
    return session;
  }

  /** Seconds since the epoch. */
  #now(): number {
    return Math.floor(this.#clock() / MICROS);
  }
}

/** The error for a recovery session or proof where it is not accepted. */
export const recoveryOnly = (): CairnlogError =>
  new CairnlogError("forbidden", "A recovery session serves the succession of its key and nothing else.");

/** The error for a session that only reads where something would be changed. */
export const readsOnly = (): CairnlogError =>
  new CairnlogError("forbidden", "This token only reads: sign in with the operator key for anything else.");
