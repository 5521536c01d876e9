/** The key registry: registering, replacing and revoking the signer's key. Each receipt is verified on arrival. */

import * as wire from "../../../engine/contract/identity/keys.js";
import { encodeBase64, type PublicKey, parsePublicKey } from "../../../engine/verify/index.js";
import { registrationStatement, successionMessage } from "../../../engine/verify/keys/contract.js";
import { asLogged, confirmed, moment } from "../base/compare.js";
import { ClientError } from "../base/error.js";
import type { Headers } from "../base/http.js";
import { pages } from "../base/pages.js";
import type { Signer } from "../base/signer.js";
import type { KeyDetail, KeyRegistered, KeyRevoked, KeyStatusView, KeySucceeded, KeySummary } from "../base/types.js";
import { Area } from "../log/area.js";
import { CHOSEN } from "../log/expected.js";
import { receiptPlace } from "../log/proven.js";

export interface RegisterOptions {
  /** Display name: 1 to 200 characters. */
  readonly pseudonym: string;
  /** ISO 8601 date-time. */
  readonly expirationDate?: string | undefined;
}

export interface SucceedOptions {
  /** The old key's pseudonym, if absent. */
  readonly pseudonym?: string | undefined;
  readonly expirationDate?: string | undefined;
  /** Whether the old key has expired. It then needs a recovery challenge. */
  readonly recovery?: boolean;
  /** Required if the old key has a password. */
  readonly password?: string | undefined;
}

export class KeysClient extends Area {
  /**
   * Registers the signer's key, which signs the request. It replaces a registration of the key by strangers.
   * @throws ClientError
   */
  async register({ pseudonym, expirationDate }: RegisterOptions): Promise<KeyRegistered> {
    const { key } = this.auth;
    const statement = registrationStatement(key.fingerprint, pseudonym, expirationDate ?? null);
    const possession_signature = await this.auth.signStatement(statement);
    return this.#register(key, { pseudonym, expirationDate }, possession_signature, {});
  }

  /**
   * Registers the key of somebody else, in the signer's session: so an operator or another trust anchor lets a key in where
   * not everybody may write. What is recorded gives way to what the key signs itself.
   * @param publicKeyPem PEM of the key
   * @throws ClientError; CairnlogError `invalid-key`, `private-key`
   */
  registerOther(publicKeyPem: string, options: RegisterOptions): Promise<KeyRegistered> {
    const key = parsePublicKey(publicKeyPem);
    return this.auth.withSession((headers) => this.#register(key, options, null, headers));
  }

  async #register(
    { fingerprint, pem, algorithm }: PublicKey,
    { pseudonym, expirationDate }: RegisterOptions,
    possession_signature: string | null,
    headers: Headers,
  ): Promise<KeyRegistered> {
    const floor = await this.watch.sizeBefore();
    const payload = {
      public_key: pem,
      pseudonym,
      key_algorithm: algorithm,
      expiration_date: expirationDate,
      possession_signature,
    };
    const receipt = await this.http.post(wire.KeyRegistered, "/keys/register", { payload }, headers);
    const name = pseudonym.normalize("NFC");
    const proven = await this.watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "key_registration",
      payload: {
        fingerprint,
        public_key: pem,
        pseudonym: name,
        key_algorithm: algorithm,
        expiration_date: moment(expirationDate),
        possession_signature,
      },
    });
    return this.watch.agreed(receipt, { fingerprint, pseudonym: name, algorithm, ...receiptPlace(proven) }, proven);
  }

  /** Replaces the signer's key by another one. Both sign. @throws ClientError */
  async succeed(successor: Signer, options: SucceedOptions = {}): Promise<KeySucceeded> {
    const { pseudonym, expirationDate: expiration_date, recovery, password } = options;
    const old_fingerprint = this.auth.key.fingerprint;
    const { fingerprint, pem, algorithm } = parsePublicKey(successor.publicKeyPem);
    const message = successionMessage(old_fingerprint, fingerprint);
    const new_key_signature = encodeBase64(await successor.sign(new TextEncoder().encode(message)));
    const floor = await this.watch.sizeBefore();
    const body = {
      payload: {
        old_fingerprint,
        new_public_key: pem,
        new_algorithm: algorithm,
        new_key_signature,
        pseudonym,
        expiration_date,
      },
      password,
    };
    const purpose = recovery ? "recovery" : "general";
    const receipt = await this.auth.postProven(wire.KeySucceeded, "/keys/succeed", body, purpose);
    const proven = await this.watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "key_succession",
      payload: {
        old_fingerprint,
        fingerprint,
        public_key: pem,
        pseudonym: pseudonym?.normalize("NFC") ?? CHOSEN,
        key_algorithm: algorithm,
        expiration_date: moment(expiration_date),
        new_key_signature,
      },
    });
    return this.watch.agreed(
      receipt,
      { old_fingerprint, new_fingerprint: fingerprint, ...receiptPlace(proven) },
      proven,
    );
  }

  /**
   * Revokes the signer's key for ever. Without a signer it revokes the session's key, as long as the session began only
   * minutes ago.
   * @throws ClientError
   */
  async revoke(): Promise<KeyRevoked> {
    const { fingerprint } = this.auth;
    const floor = await this.watch.sizeBefore();
    const receipt = await this.auth.postAuthorised(wire.KeyRevoked, "/keys/revoke", { payload: { fingerprint } });
    const proven = await this.watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "key_revocation",
      payload: { fingerprint },
    });
    return this.watch.agreed(receipt, { fingerprint, ...receiptPlace(proven) }, proven);
  }

  /**
   * The service's record of a key. The client checks that the public key has the requested fingerprint. @throws
   * ClientError
   */
  async find(fingerprint: string): Promise<KeyDetail> {
    const key = await this.http.get(wire.KeyDetail, `/keys/${encodeURIComponent(fingerprint)}`);
    const shown = readKey(key.public_key);
    if (shown?.fingerprint !== asLogged(fingerprint))
      throw new ClientError("malformed-answer", `The service shows another key than ${fingerprint}.`);
    return confirmed(key, { fingerprint: shown.fingerprint, algorithm: shown.algorithm }, "The key");
  }

  /** A key's status, without the key. @throws ClientError */
  async status(fingerprint: string): Promise<KeyStatusView> {
    const status = await this.http.get(wire.KeyStatusView, `/keys/${encodeURIComponent(fingerprint)}/status`);
    return confirmed(status, { fingerprint: asLogged(fingerprint) }, "The key's status");
  }

  /**
   * Keys in order of registration, each once. With a text, only keys whose pseudonym contains it.
   * @throws ClientError
   */
  async *list(pseudonym?: string): AsyncGenerator<KeySummary, void, undefined> {
    const path = pseudonym === undefined ? "/keys" : "/keys/search";
    const list = { schema: wire.KeyPage, path, member: "keys", query: { pseudonym }, hasGaps: true } as const;
    /** Whether each key had named itself. */
    const seen = new Map<string, boolean>();
    for await (const key of pages(this.http, list)) {
      const { fingerprint, named } = key;
      const before = seen.get(fingerprint);
      // Who names itself meanwhile moves to the end.
      if (before || before === named)
        throw new ClientError("malformed-answer", `The list of keys has ${fingerprint} twice.`);
      seen.set(fingerprint, named);
      if (before === undefined) yield key;
    }
  }
}

/** The parsed key; undefined for a text that is not a public key. */
function readKey(pem: string): PublicKey | undefined {
  try {
    return parsePublicKey(pem);
  } catch {
    return undefined;
  }
}
