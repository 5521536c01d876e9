/** The command that sets a password. */
import { CairnlogError } from "../../error.js";
import { define, type Transaction } from "../../log/write/commands.js";
import { requireActive } from "../keys/status.js";

/** @throws CairnlogError `key-not-active`; `forbidden` when the password was changed since `known_hash` was read */
export const setPassword = define(
  "password.set",
  (
    transaction: Transaction,
    {
      fingerprint,
      known_hash,
      hash,
      version,
    }: {
      readonly fingerprint: string;
      /** The hash of the password that the caller has given. Null if the key had no password. */
      readonly known_hash: string | null;
      readonly hash: string;
      /** Random. */
      readonly version: string;
    },
  ): void => {
    requireActive(transaction, fingerprint);
    if ((transaction.get("passwords", fingerprint)?.hash ?? null) !== known_hash) throw wrongPassword();
    transaction.put("passwords", fingerprint, { hash, version });
  },
);

export function wrongPassword(): CairnlogError {
  return new CairnlogError("forbidden", "The password is wrong.");
}
