/**
 * Proofs of possession: detached proofs for single writes, and sessions, which are kept and renewed. The service
 * chooses the text of a challenge, so the client signs only text of the one known form.
 */
import { type ChallengePurpose, noncePrefix } from "../../engine/verify/challenge.js";
import { canonicalJson, encodeBase64, type PublicKey, parsePublicKey } from "../../engine/verify/index.js";
import * as wire from "../wire/identity/auth.js";
import { confirmed } from "./compare.js";
import { ClientError } from "./error.js";
import type { Headers, Http } from "./http.js";
import type { Signer } from "./signer.js";
import type { AuthProof, PasswordSet, Session } from "./types.js";

/** A session is renewed when less than this time remains. */
const RENEW_BEFORE_MS = 300_000;
/** The part of a nonce after the fingerprint: base64url of 32 bytes. */
const RANDOM_PART = /^[A-Za-z0-9_-]{43}$/;

/**
 * Whether `nonce`, which the server chose, is a challenge for this key and purpose. It then cannot be a manifest, a
 * message of another protocol, or another key's challenge.
 */
export function isOwnChallenge(nonce: string, purpose: ChallengePurpose, fingerprint: string): boolean {
  const beginning = noncePrefix(purpose, fingerprint);
  return nonce.startsWith(beginning) && RANDOM_PART.test(nonce.slice(beginning.length));
}

/** The proofs and the session of one key. */
export class Authority {
  readonly #http: Http;
  readonly #signer: Signer | undefined;
  readonly #key: PublicKey | undefined;
  #session: Session | undefined;

  /** @throws CairnlogError `invalid-key` for a signer with an invalid public key */
  constructor(http: Http, signer: Signer | undefined, session?: Session) {
    this.#http = http;
    this.#signer = signer;
    this.#key = signer && parsePublicKey(signer.publicKeyPem);
    this.#session = session;
    if (this.#key && session && session.fingerprint !== this.#key.fingerprint)
      throw new ClientError("no-signer", "The session is another key's than the signer's.");
  }

  /** The session as it was last renewed. */
  get session(): Session | undefined {
    return this.#session;
  }

  /** The signer's key. @throws ClientError `no-signer` */
  get key(): PublicKey {
    if (!this.#key) throw noSigner();
    return this.#key;
  }

  /** The fingerprint of the signer's key; undefined without a signer. */
  get ownFingerprint(): string | undefined {
    return this.#key?.fingerprint;
  }

  /** The key on whose behalf this client writes: the signer's, or the session's. @throws ClientError `no-signer` */
  get fingerprint(): string {
    const fingerprint = this.#key?.fingerprint ?? this.#session?.fingerprint;
    if (fingerprint === undefined) throw noSigner();
    return fingerprint;
  }

  /** A signature in base64. @throws ClientError `no-signer`, and the errors of the signer */
  async sign(bytes: Uint8Array): Promise<string> {
    if (!this.#signer) throw noSigner();
    return encodeBase64(await this.#signer.sign(bytes));
  }

  /**
   * A signature in base64 over the canonical JSON of a statement.
   * @throws ClientError `no-signer`, and the errors of the signer
   */
  signStatement(statement: object): Promise<string> {
    return this.sign(new TextEncoder().encode(canonicalJson(statement)));
  }

  /** A proof by a new challenge. @throws ClientError `unsafe-challenge` for a nonce that must not be signed */
  async proof(purpose: ChallengePurpose = "general"): Promise<AuthProof> {
    const { fingerprint } = this.key;
    const asked = purpose === "recovery" ? { recovery: true } : { purpose };
    const { challenge_id, nonce } = await this.#http.post(wire.Challenge, "/auth/challenge", { fingerprint, ...asked });
    if (!isOwnChallenge(nonce, purpose, fingerprint))
      throw new ClientError("unsafe-challenge", "The service asks to sign something that is no challenge to this key.");
    const challenge_signature = await this.sign(new TextEncoder().encode(nonce));
    return { challenge_id, challenge_signature, ...(purpose === "recovery" ? { recovery: true } : {}) };
  }

  /** The authorisation of a write: a proof for it alone if there is a signer, otherwise the session. */
  async forWrite(): Promise<{ readonly auth: { readonly auth?: AuthProof }; readonly headers: Headers }> {
    if (this.#signer) return { auth: { auth: await this.proof() }, headers: {} };
    return { auth: {}, headers: await this.bearer() };
  }

  /** Signs in; the session is kept. @throws ClientError */
  async login(password?: string): Promise<Session> {
    const proof = await this.proof("login");
    const session = await this.#http.post(wire.LoginResult, "/auth/login", {
      ...proof,
      ...(password === undefined ? {} : { password }),
    });
    return this.#keep(session);
  }

  /** Sets the key's password, or changes it. @throws ClientError */
  async setPassword(password: string, current?: string): Promise<PasswordSet> {
    const { challenge_id, challenge_signature } = await this.proof();
    const answer = await this.#http.post(wire.PasswordSet, "/auth/password", {
      challenge_id,
      challenge_signature,
      password,
      ...(current === undefined ? {} : { current_password: current }),
    });
    return confirmed(answer, { fingerprint: this.key.fingerprint }, "The password");
  }

  /**
   * Sends a request with the session, which is renewed or begun again if necessary. If it has ended in the meantime, it
   * is begun again once.
   */
  async withSession<T>(send: (headers: Headers) => Promise<T>): Promise<T> {
    try {
      return await send(await this.bearer());
    } catch (error) {
      if (!(error instanceof ClientError) || error.status !== 401 || !this.#signer) throw error;
      return send(header(await this.login()));
    }
  }

  /** The header of a session that does not end soon. @throws ClientError */
  async bearer(): Promise<Headers> {
    const session = this.#session;
    if (!session) return header(await this.login());
    if (Date.parse(session.expires_at) - Date.now() > RENEW_BEFORE_MS) return header(session);
    try {
      return header(this.#keep(await this.#http.post(wire.LoginResult, "/auth/renew", {}, header(session))));
    } catch (error) {
      // A session cannot be renewed beyond a day after sign-in.
      if (!(error instanceof ClientError) || error.status !== 401 || !this.#signer) throw error;
      return header(await this.login());
    }
  }

  #keep(session: Session): Session {
    if (session.fingerprint !== this.fingerprint)
      throw new ClientError("malformed-answer", "The service gave the session of another key.");
    this.#session = session;
    return session;
  }
}

const header = ({ token }: Session): Headers => ({ authorization: `Bearer ${token}` });

const noSigner = (): ClientError =>
  new ClientError("no-signer", "This takes a signer, or a session: none was given to the client.");
