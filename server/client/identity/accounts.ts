/** Accounts: opening one, getting it back, and binding further keys to it. None of that is on the log. */
import { enrolmentStatement } from "../../../engine/verify/contract.js";
import { canonicalJson, parsePublicKey } from "../../../engine/verify/index.js";
import * as wire from "../../wire/identity/accounts.js";
import type { Http } from "../http.js";
import { Authority } from "../session.js";
import type { Signer } from "../signer.js";
import type {
  EnrollCredential,
  Enrolled,
  OpenAccount,
  OpenedAccount,
  RecoverAccount,
  RecoveredAccount,
} from "../types.js";

/** An account; its first key is the signer's, unless another is named. */
export type NewAccount = Omit<OpenAccount, "key_fingerprint"> & { readonly key_fingerprint?: string };

/** What gets an account back; the key that takes the place of all others is the signer's, unless another is named. */
export type Recovery = Omit<RecoverAccount, "key_fingerprint"> & { readonly key_fingerprint?: string };

/** How a further key is to be known. */
export type NewCredential = Pick<EnrollCredential, "device_label" | "credential_type" | "hardware_attestation">;

export class AccountsClient {
  readonly #http: Http;
  readonly #authority: Authority;

  constructor(http: Http, authority: Authority) {
    this.#http = http;
    this.#authority = authority;
  }

  /**
   * Opens an account for a key that is registered.
   * @returns with the recovery key, which is shown this once and kept nowhere; a secret
   * @throws ClientError
   */
  open(account: NewAccount): Promise<OpenedAccount> {
    return this.#http.post(wire.OpenedAccount, "/users", this.#withKey(account));
  }

  /**
   * Gets an account back with its recovery key. Every credential it had is revoked.
   * @returns with the new recovery key; a secret
   * @throws ClientError
   */
  recover(recovery: Recovery): Promise<RecoveredAccount> {
    return this.#http.post(wire.RecoveredAccount, "/users/recover", this.#withKey(recovery));
  }

  /** Binds another, registered key to the account of the signer's. Both sign, and both are in hardware. @throws ClientError */
  async enroll(holder: Signer, credential: NewCredential): Promise<Enrolled> {
    const issuing_fingerprint = this.#authority.key.fingerprint;
    const key_fingerprint = parsePublicKey(holder.publicKeyPem).fingerprint;
    const { challenge_id, challenge_signature } = await new Authority(this.#http, holder).proof();
    const statement = enrolmentStatement(challenge_id, issuing_fingerprint, key_fingerprint);
    const chain_signature = await this.#authority.sign(new TextEncoder().encode(canonicalJson(statement)));
    return this.#http.post(wire.Enrolled, "/credentials/enroll", {
      ...credential,
      issuing_fingerprint,
      key_fingerprint,
      challenge_id,
      challenge_signature,
      chain_signature,
    });
  }

  #withKey<T extends { readonly key_fingerprint?: string }>(body: T): T & { readonly key_fingerprint: string } {
    return { ...body, key_fingerprint: body.key_fingerprint ?? this.#authority.key.fingerprint };
  }
}
