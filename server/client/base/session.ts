/**
 * Proofs of possession: detached proofs for single writes, and sessions, which are kept and renewed. The service
 * chooses the text of a challenge, so the client computes it again, and signs only what is bound to the service that its
 * user named and to the request that it is about to send.
 */
import type { Static, TSchema } from "typebox";
import { isOrigin } from "../../../engine/contract/check.js";
import * as wire from "../../../engine/contract/identity/auth.js";
import { type ChallengePurpose, isChallengeNonce, requestAct } from "../../../engine/verify/events/possession.js";
import { canonicalJson, encodeBase64, type PublicKey, parsePublicKey } from "../../../engine/verify/index.js";
import { confirmed } from "./compare.js";
import { ClientError } from "./error.js";
import { type Headers, type Http, PREFIX } from "./http.js";
import type { Signer } from "./signer.js";
import type { AuthProof, PasswordSet, Session } from "./types.js";

/** A session is renewed when less than this time remains. */
const RENEW_BEFORE_MS = 300_000;
/** The body of a request, as it is sent. */
type Body = Readonly<Record<string, unknown>>;

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

  /**
   * A proof for one request, by a new challenge that names it.
   * @param path below `/api/v1`
   * @param body without its `auth`
   * @throws ClientError `unsafe-challenge` for a challenge that must not be signed
   */
  async proof(path: string, body: Body, purpose: "general" | "recovery" = "general"): Promise<AuthProof> {
    const proof = await this.#signed(purpose, requestAct("POST", PREFIX + path, body));
    return { ...proof, ...(purpose === "recovery" ? { recovery: true } : {}) };
  }

  /** Posts `body` with a proof for this request alone. @throws ClientError */
  async postProven<S extends TSchema>(
    schema: S,
    path: string,
    body: Body,
    purpose?: "general" | "recovery",
  ): Promise<Static<S>> {
    return this.#http.post(schema, path, { ...body, auth: await this.proof(path, body, purpose) });
  }

  /** Posts `body` with a proof for this request alone if there is a signer, otherwise with the session. @throws ClientError */
  async postAuthorised<S extends TSchema>(schema: S, path: string, body: Body): Promise<Static<S>> {
    if (this.#signer) return this.postProven(schema, path, body);
    return this.#http.post(schema, path, body, await this.bearer());
  }

  /** The signature of a new challenge with exactly these terms. */
  async #signed(purpose: ChallengePurpose, act: string | null) {
    const { fingerprint } = this.key;
    const asked = { fingerprint, ...(purpose === "recovery" ? { recovery: true } : { purpose }), ...(act && { act }) };
    const { challenge_id, nonce, origin } = await this.#http.post(wire.AnyChallenge, "/auth/challenge", asked);
    const { origins, server } = this.#http;
    if (origin === undefined)
      throw unsafe(`The service at ${server} is older: its challenges do not say for which service they are.`);
    if (!origins.includes(origin)) throw unsafe(foreign(server, origin, origins));
    if (!isChallengeNonce(nonce, { origin, purpose, fingerprint, act }))
      throw unsafe(
        `The service at ${server} asks to sign something else than a challenge to this key for this request.`,
      );
    return { challenge_id, challenge_signature: await this.sign(new TextEncoder().encode(nonce)) };
  }

  /** Signs in; the session is kept. @throws ClientError */
  async login(password?: string): Promise<Session> {
    const signed = await this.#signed("login", null);
    const session = await this.#http.post(wire.LoginResult, "/auth/login", {
      ...signed,
      password,
    });
    return this.#keep(session);
  }

  /** Sets the key's password, or changes it. @throws ClientError */
  async setPassword(password: string, current?: string): Promise<PasswordSet> {
    const path = "/auth/password";
    const body = { password, current_password: current };
    const answer = await this.#http.post(wire.PasswordSet, path, { ...body, ...(await this.proof(path, body)) });
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

const unsafe = (why: string): ClientError => new ClientError("unsafe-challenge", `${why} Nothing was signed.`);

/** Why a challenge is refused that says it is another service's. The server chose `origin`. */
function foreign(server: string, origin: string, named: readonly string[]): string {
  const whose = isOrigin(origin) ? origin : "something that is no origin";
  return `The challenge from ${server} is one of ${whose}, and you named ${named.join(", ")}: it may be relayed to use your signature elsewhere. If that is its name, and a tunnel or a proxy gives it another, say so (--as ${whose}; publicOrigin in a client).`;
}

const noSigner = (): ClientError =>
  new ClientError("no-signer", "This takes a signer, or a session: none was given to the client.");
