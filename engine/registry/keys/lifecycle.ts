/**
 * How a key ends: it is succeeded by another, or revoked (docs/spec §4.3). The caller has verified
 * possession of the key. The command checks everything that depends on the state of the log, so that only one of two
 * simultaneous commands succeeds.
 */

import { CairnlogError } from "../../base/error.js";
import type * as contract from "../../contract/identity/keys.js";
import type { Value } from "../../contract/types.js";
import { importPublicKey } from "../../crypto/keys/spki.js";
import type { SignatureVerifier } from "../../crypto/pool/pool.js";
import type { OperatorKey } from "../../crypto/signer/operator-key.js";
import type { Log } from "../../log/log.js";
import { successionMessage } from "../../verify/keys/contract.js";
import { isFingerprint, plainKey, readPseudonym } from "../events/keys.js";
import { Faults, invalidInput, members } from "../shared/input.js";
import type { Caller, Writes } from "../writes/writes.js";
import { isRegistered, revokeKey, succeedKey } from "./commands.js";
import { checkAlgorithm, checkPossession, readExpiration } from "./keys.js";

type Succession = Value<typeof contract.SucceedKey>["payload"];

type SuccessionReceipt = Value<typeof contract.KeySucceeded>;

type RevocationReceipt = Value<typeof contract.KeyRevoked>;

export class KeyLifecycle {
  readonly #writes: Writes;
  readonly #verifier: SignatureVerifier;
  readonly #operator: OperatorKey;
  readonly #log: Pick<Log, "operators">;

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly writes: Writes;
    readonly verifier: SignatureVerifier;
    readonly operator: OperatorKey;
    readonly log: Pick<Log, "operators">;
  }) {
    this.#writes = parts.writes;
    this.#verifier = parts.verifier;
    this.#operator = parts.operator;
    this.#log = parts.log;
  }

  /**
   * Replaces a key by a new one (`POST /keys/succeed`) and resolves when the entry is on disk. The caller has verified
   * possession of the old key.
   * @param proof `recovery` if the proof was a recovery challenge or token; an expired key needs such a proof
   * @throws CairnlogError `invalid-key`, `private-key`, `invalid-input`, `invalid-signature`; `not-found`;
   *   `key-not-active` for an expired key without recovery; `wrong-key-status` for one that was succeeded or revoked;
   *   `already-exists` when the new key is registered, and has named itself, has ended or does not sign this; `forbidden` for the
   *   operator key; and as `Log.append` does
   */
  async succeed(
    succession: Succession,
    { recovery }: { readonly recovery: boolean },
    client: Caller | null = null,
  ): Promise<SuccessionReceipt> {
    const input = members(succession);
    const old_fingerprint = this.#endable(input.old_fingerprint, "/old_fingerprint");
    const key = importPublicKey(input.new_public_key as string);
    const faults = new Faults();
    const pseudonym = input.pseudonym == null ? null : readPseudonym(input.pseudonym, "/pseudonym", faults)!;
    const expiration_date = readExpiration(input.expiration_date, faults);
    checkAlgorithm(input.new_algorithm, "/new_algorithm", key, faults);
    if (this.#log.operators.retired.has(key.fingerprint)) throw isRegistered(key);
    const { fingerprint } = key;
    const signed = {
      message: () => Buffer.from(successionMessage(old_fingerprint, fingerprint)),
      signature: input.new_key_signature,
      path: "/new_key_signature",
      about: "the succession",
    };
    const new_key_signature = signed.signature == null ? null : await checkPossession(this.#verifier, key, signed);

    const { receipts } = await this.#writes.execute(
      succeedKey,
      {
        old_fingerprint,
        key: plainKey(key),
        pseudonym,
        expiration_date,
        new_key_signature,
        recovery,
        operator_fingerprint: this.#operator.fingerprint,
      },
      client,
      old_fingerprint,
    );
    const { log_entry_id, leaf_index, entry_hash } = receipts[0]!;
    return { old_fingerprint, new_fingerprint: fingerprint, log_entry_id, leaf_index, entry_hash };
  }

  /**
   * Revokes a key for ever (`POST /keys/revoke`) and resolves when the entry is on disk. The caller has verified
   * possession of the key, and not by recovery.
   * @throws CairnlogError `not-found`; `wrong-key-status` for a key that is not active; `forbidden` for the operator
   *   key; and as `Log.append` does
   */
  async revoke(named: string, client: Caller | null = null): Promise<RevocationReceipt> {
    const fingerprint = this.#endable(named, "/fingerprint");
    const { receipts } = await this.#writes.execute(revokeKey, { fingerprint }, client, fingerprint);
    const { log_entry_id, leaf_index, entry_hash } = receipts[0]!;
    return { fingerprint, status: "revoked", log_entry_id, leaf_index, entry_hash };
  }

  /**
   * The fingerprint, in the registry's form. The operator key is refused, because the log stays bound to the key that
   * signs its heads.
   */
  #endable(fingerprint: unknown, path: string): string {
    if (!isFingerprint(fingerprint)) throw invalidInput(path, "It must be a fingerprint.");
    if (fingerprint === this.#operator.fingerprint)
      throw new CairnlogError("forbidden", "The operator key signs this log; it can be neither succeeded nor revoked.");
    return fingerprint;
  }
}
