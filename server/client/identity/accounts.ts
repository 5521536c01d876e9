/** Accounts: opening, recovery, and further keys. They are not in the log. */

import * as wire from "../../../engine/contract/identity/accounts.js";
import { parsePublicKey } from "../../../engine/verify/index.js";
import { accountStatement, enrolmentStatement } from "../../../engine/verify/keys/contract.js";
import { asLogged, confirmed } from "../base/compare.js";
import { Authority } from "../base/session.js";
import type { Signer } from "../base/signer.js";
import type {
  EnrollCredential,
  Enrolled,
  OpenAccount,
  OpenedAccount,
  RecoverAccount,
  RecoveredAccount,
} from "../base/types.js";
import { Area } from "../log/area.js";

/** An account. Its first key is the signer's, unless another is given. */
export type NewAccount = Omit<OpenAccount, "key_fingerprint"> & { readonly key_fingerprint?: string };

/** The recovery of an account. The key that replaces all others is the signer's, unless another is given. */
export type Recovery = Omit<RecoverAccount, "key_fingerprint"> & { readonly key_fingerprint?: string };

/** The description of a further key. */
export type NewCredential = Pick<EnrollCredential, "device_label" | "credential_type" | "hardware_attestation">;

export class AccountsClient extends Area {
  /**
   * Opens an account for a registered key. The signer's key signs the request, so that nobody else can claim the key.
   * @returns the account with its recovery key, a secret that is shown only this once and stored nowhere
   * @throws ClientError
   */
  async open(account: NewAccount): Promise<OpenedAccount> {
    const body = this.#withKey(account);
    const { display_name, email, key_fingerprint } = body;
    const isOwn = asLogged(key_fingerprint) === this.auth.ownFingerprint;
    const statement = accountStatement(display_name, email, key_fingerprint);
    const possession = isOwn ? { possession_signature: await this.auth.signStatement(statement) } : {};
    const opened = await this.http.post(wire.OpenedAccount, "/users", { ...body, ...possession });
    return checked(opened, display_name, body);
  }

  /**
   * Recovers an account with its recovery key. All of its credentials are revoked.
   * @returns the account with its new recovery key, a secret
   * @throws ClientError
   */
  async recover(recovery: Recovery): Promise<RecoveredAccount> {
    const body = this.#withKey(recovery);
    const recovered = await this.http.post(wire.RecoveredAccount, "/users/recover", body);
    const { display_name } = recovered.user;
    // Case is ignored when an account is named.
    const isNamed = folded(display_name) === folded(body.pseudonym);
    return checked(recovered, isNamed ? display_name : body.pseudonym, body);
  }

  /**
   * Adds another registered key to the account of the signer's key. Both keys sign, and both are in hardware.
   * @throws ClientError
   */
  async enroll(holder: Signer, credential: NewCredential): Promise<Enrolled> {
    const issuing_fingerprint = this.auth.key.fingerprint;
    const key_fingerprint = parsePublicKey(holder.publicKeyPem).fingerprint;
    const path = "/credentials/enroll";
    const body = { ...credential, issuing_fingerprint, key_fingerprint };
    const { challenge_id, challenge_signature } = await new Authority(this.http, holder).proof(path, body);
    const statement = enrolmentStatement(challenge_id, issuing_fingerprint, key_fingerprint);
    const chain_signature = await this.auth.signStatement(statement);
    const enrolled = await this.http.post(wire.Enrolled, path, {
      ...body,
      challenge_id,
      challenge_signature,
      chain_signature,
    });
    checkCredential(enrolled.credential, { ...credential, key_fingerprint });
    return enrolled;
  }

  #withKey<T extends { readonly key_fingerprint?: string }>(body: T): T & { readonly key_fingerprint: string } {
    return { ...body, key_fingerprint: body.key_fingerprint ?? this.auth.key.fingerprint };
  }
}

/** The form in which the service compares display names. */
const folded = (name: string): string => name.normalize("NFD").toLowerCase().toUpperCase().toLowerCase();

/** The description of a credential in the request. */
type Bound = Pick<NewCredential, "device_label" | "credential_type"> & { readonly key_fingerprint: string };

/** @throws ClientError `malformed-answer` */
function checked<T extends OpenedAccount>(account: T, display_name: string, bound: Bound): T {
  confirmed(account.user, { display_name: display_name.normalize("NFC") }, "The account");
  checkCredential(account.credential, bound);
  return account;
}

/** Checks a new credential. @throws ClientError `malformed-answer` */
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
