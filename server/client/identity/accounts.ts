/** Accounts: opening one, getting it back, and binding further keys to it. None of that is on the log. */
import { accountStatement, enrolmentStatement } from "../../../engine/verify/contract.js";
import { parsePublicKey } from "../../../engine/verify/index.js";
import * as wire from "../../wire/identity/accounts.js";
import { asLogged, confirmed } from "../compare.js";
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
   * Opens an account for a key that is registered. The signer's key signs that, so that nobody else can hold it.
   * @returns with the recovery key, which is shown this once and kept nowhere; a secret
   * @throws ClientError
   */
  async open(account: NewAccount): Promise<OpenedAccount> {
    const body = this.#withKey(account);
    const { display_name, email, key_fingerprint } = body;
    const isOwn = asLogged(key_fingerprint) === this.#authority.ownFingerprint;
    const statement = accountStatement(display_name, email, key_fingerprint);
    const possession = isOwn ? { possession_signature: await this.#authority.signStatement(statement) } : {};
    const opened = await this.#http.post(wire.OpenedAccount, "/users", { ...body, ...possession });
    return checked(opened, display_name, body);
  }

  /**
   * Gets an account back with its recovery key. Every credential it had is revoked.
   * @returns with the new recovery key; a secret
   * @throws ClientError
   */
  async recover(recovery: Recovery): Promise<RecoveredAccount> {
    const body = this.#withKey(recovery);
    const recovered = await this.#http.post(wire.RecoveredAccount, "/users/recover", body);
    const { display_name } = recovered.user;
    // It was named without regard to case.
    const isNamed = folded(display_name) === folded(body.pseudonym);
    return checked(recovered, isNamed ? display_name : body.pseudonym, body);
  }

  /** Binds another, registered key to the account of the signer's. Both sign, and both are in hardware. @throws ClientError */
  async enroll(holder: Signer, credential: NewCredential): Promise<Enrolled> {
    const issuing_fingerprint = this.#authority.key.fingerprint;
    const key_fingerprint = parsePublicKey(holder.publicKeyPem).fingerprint;
    const { challenge_id, challenge_signature } = await new Authority(this.#http, holder).proof();
    const statement = enrolmentStatement(challenge_id, issuing_fingerprint, key_fingerprint);
    const chain_signature = await this.#authority.signStatement(statement);
    const enrolled = await this.#http.post(wire.Enrolled, "/credentials/enroll", {
      ...credential,
      issuing_fingerprint,
      key_fingerprint,
      challenge_id,
      challenge_signature,
      chain_signature,
    });
    checkCredential(enrolled.credential, { ...credential, key_fingerprint });
    return enrolled;
  }

  #withKey<T extends { readonly key_fingerprint?: string }>(body: T): T & { readonly key_fingerprint: string } {
    return { ...body, key_fingerprint: body.key_fingerprint ?? this.#authority.key.fingerprint };
  }
}

/** The form in which the service compares display names. */
const folded = (name: string): string => name.normalize("NFD").toLowerCase().toUpperCase().toLowerCase();

/** What was said of a credential. */
type Bound = Pick<NewCredential, "device_label" | "credential_type"> & { readonly key_fingerprint: string };

/** @throws ClientError `malformed-answer` */
function checked<T extends OpenedAccount>(account: T, display_name: string, bound: Bound): T {
  confirmed(account.user, { display_name: display_name.normalize("NFC") }, "The account");
  checkCredential(account.credential, bound);
  return account;
}

/** A credential that was made just now. @throws ClientError `malformed-answer` */
function checkCredential(
  credential: Enrolled["credential"],
  { key_fingerprint, credential_type, device_label }: Bound,
): void {
  const key = {
    key_fingerprint: asLogged(key_fingerprint),
    credential_type,
    device_label: device_label.normalize("NFC"),
  };
  confirmed(credential, { ...key, status: "active", revoked_at: null }, "The credential");
}
