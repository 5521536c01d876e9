/** The key registry: registering, replacing and revoking one's key, each with a receipt that is checked on arrival. */
import { successionMessage } from "../../../engine/verify/contract.js";
import { encodeBase64, parsePublicKey } from "../../../engine/verify/index.js";
import * as wire from "../../wire/identity/keys.js";
import { ClientError } from "../error.js";
import type { Http } from "../http.js";
import { asLogged, type Watch } from "../log/watch.js";
import { pages } from "../pages.js";
import type { Authority } from "../session.js";
import type { Signer } from "../signer.js";
import type { KeyDetail, KeyRegistered, KeyRevoked, KeyStatusView, KeySucceeded, KeySummary } from "../types.js";

export interface RegisterOptions {
  /** Display name: 1 to 200 characters. */
  readonly pseudonym: string;
  /** ISO 8601 date-time. */
  readonly expirationDate?: string | undefined;
}

export interface SucceedOptions {
  /** Default: the old key's. */
  readonly pseudonym?: string | undefined;
  readonly expirationDate?: string | undefined;
  /** Whether the old key has expired, so that it takes a recovery challenge. */
  readonly recovery?: boolean;
}

export class KeysClient {
  readonly #http: Http;
  readonly #watch: Watch;
  readonly #authority: Authority;

  constructor(http: Http, watch: Watch, authority: Authority) {
    this.#http = http;
    this.#watch = watch;
    this.#authority = authority;
  }

  /** Registers the signer's key. @throws ClientError */
  async register({ pseudonym, expirationDate }: RegisterOptions): Promise<KeyRegistered> {
    const { fingerprint, pem, algorithm } = this.#authority.key;
    const floor = await this.#watch.floor();
    const payload = {
      public_key: pem,
      pseudonym,
      key_algorithm: algorithm,
      ...(expirationDate === undefined ? {} : { expiration_date: expirationDate }),
    };
    const receipt = await this.#http.post(wire.KeyRegistered, "/keys/register", { payload });
    await this.#watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "key_registration",
      payload: { fingerprint, public_key: pem, pseudonym: pseudonym.normalize("NFC"), key_algorithm: algorithm },
    });
    return receipt;
  }

  /** Replaces the signer's key by another, both of which sign. @throws ClientError */
  async succeed(successor: Signer, options: SucceedOptions = {}): Promise<KeySucceeded> {
    const { pseudonym, expirationDate, recovery = false } = options;
    const old = this.#authority.key;
    const key = parsePublicKey(successor.publicKeyPem);
    const message = successionMessage(old.fingerprint, key.fingerprint);
    const newKeySignature = encodeBase64(await successor.sign(new TextEncoder().encode(message)));
    const floor = await this.#watch.floor();
    const receipt = await this.#http.post(wire.KeySucceeded, "/keys/succeed", {
      payload: {
        old_fingerprint: old.fingerprint,
        new_public_key: key.pem,
        new_algorithm: key.algorithm,
        new_key_signature: newKeySignature,
        ...(pseudonym === undefined ? {} : { pseudonym }),
        ...(expirationDate === undefined ? {} : { expiration_date: expirationDate }),
      },
      auth: await this.#authority.proof(recovery ? "recovery" : "general"),
    });
    await this.#watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "key_succession",
      payload: { old_fingerprint: old.fingerprint, fingerprint: key.fingerprint, public_key: key.pem },
    });
    return receipt;
  }

  /** Disables one's key for ever. @throws ClientError */
  async revoke(): Promise<KeyRevoked> {
    const { fingerprint } = this.#authority;
    const floor = await this.#watch.floor();
    const { auth, headers } = await this.#authority.forWrite();
    const receipt = await this.#http.post(
      wire.KeyRevoked,
      "/keys/revoke",
      { payload: { fingerprint }, ...auth },
      headers,
    );
    await this.#watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "key_revocation",
      payload: { fingerprint },
    });
    return receipt;
  }

  /** A key as the service tells of it; its public key has the fingerprint that was asked for. @throws ClientError */
  async find(fingerprint: string): Promise<KeyDetail> {
    const key = await this.#http.get(wire.KeyDetail, `/keys/${encodeURIComponent(fingerprint)}`);
    if (parsePublicKey(key.public_key).fingerprint !== key.fingerprint || key.fingerprint !== asLogged(fingerprint))
      throw new ClientError("malformed-answer", `The service shows another key than ${fingerprint}.`);
    return key;
  }

  /** A key's status, without the key. @throws ClientError */
  status(fingerprint: string): Promise<KeyStatusView> {
    return this.#http.get(wire.KeyStatusView, `/keys/${encodeURIComponent(fingerprint)}/status`);
  }

  /** Keys in order of registration; with a text, those whose pseudonym contains it. @throws ClientError */
  list(pseudonym?: string): AsyncGenerator<KeySummary, void, undefined> {
    const path = pseudonym === undefined ? "/keys" : "/keys/search";
    return pages(this.#http, { schema: wire.KeyPage, path, member: "keys", query: { pseudonym } });
  }
}
