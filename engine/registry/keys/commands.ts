/** Commands that create and end keys. The caller has verified possession of the key. */

import { CairnlogError } from "../../base/error.js";
import { define, type Transaction } from "../../log/state/commands.js";
import type { KeyRow } from "../../store/schema/rows.js";
import { eventOf } from "../../verify/events/kinds.js";
import {
  defaultPseudonym,
  givesWay,
  type NewKey,
  type PlainKey,
  registrationOf,
  standingOf,
  unknownKey,
  wrongKeyStatus,
} from "../events/keys.js";
import { invalidInput } from "../shared/input.js";

/**
 * Registers a key. A registration that the key has signed replaces what strangers recorded for it.
 * @throws CairnlogError `already-exists`; `invalid-input` when the expiration has passed
 */
export const registerKey = define("key.register", (transaction: Transaction, created: NewKey): void => {
  const named = created.possession_signature !== null;
  if (!givesWay(transaction.get("keys", created.key.fingerprint), { named })) throw isRegistered(created.key);
  checkExpiration(transaction, created);
  transaction.append(registrationOf(created));
});

/**
 * Replaces a key. The new key must not exist, unless it has not named itself and has signed this.
 * @throws CairnlogError `not-found`; `wrong-key-status` for a key that was succeeded or revoked; `key-not-active` for
 *   an expired one without recovery; `already-exists`; `invalid-input` when the expiration has passed
 */
export const succeedKey = define(
  "key.succeed",
  (
    transaction: Transaction,
    input: Omit<NewKey, "pseudonym" | "possession_signature"> & {
      readonly old_fingerprint: string;
      /**
       * Base64 signature by the new key, as it was sent and verified. Null if nobody has proven to hold the new key.
       */
      readonly new_key_signature: string | null;
      /** Null means the old key's pseudonym. */
      readonly pseudonym: string | null;
      /** Whether a recovery challenge or token proved the old key. */
      readonly recovery: boolean;
      readonly operator_fingerprint: string;
    },
  ): void => {
    const { old_fingerprint, key, pseudonym, expiration_date, new_key_signature } = input;
    const old = rowOf(transaction, old_fingerprint);
    const { status } = old;
    if (status !== "active") throw wrongKeyStatus(old_fingerprint, { status, named: true });
    if (standingOf(old, transaction.timestamp).status === "expired" && !input.recovery)
      throw new CairnlogError("key-not-active", "The key is expired; only a recovery challenge can succeed it.");
    const isOther = key.fingerprint !== old_fingerprint && key.fingerprint !== input.operator_fingerprint;
    const known = transaction.get("keys", key.fingerprint);
    if (!isOther || !givesWay(known, { named: new_key_signature !== null })) throw isRegistered(key);
    checkExpiration(transaction, input);
    transaction.append(
      eventOf("key_succession", {
        old_fingerprint,
        fingerprint: key.fingerprint,
        public_key: key.pem,
        pseudonym: pseudonym ?? inheritedName(transaction, old, key),
        key_algorithm: key.algorithm,
        expiration_date,
        new_key_signature,
      }),
    );
  },
);

/** @throws CairnlogError `not-found`; `wrong-key-status` for a key that is not active */
export const revokeKey = define(
  "key.revoke",
  (transaction: Transaction, { fingerprint }: { readonly fingerprint: string }): void => {
    const standing = standingOf(rowOf(transaction, fingerprint), transaction.timestamp);
    if (standing.status !== "active") throw wrongKeyStatus(fingerprint, standing);
    transaction.append(eventOf("key_revocation", { fingerprint }));
  },
);

function rowOf(transaction: Transaction, fingerprint: string): KeyRow {
  const row = transaction.get("keys", fingerprint);
  if (!row) throw unknownKey();
  return row;
}

/** What stands in place of a name that the operator withholds is no name: the successor would have signed that it is. */
const inheritedName = (transaction: Transaction, old: KeyRow, { fingerprint }: PlainKey): string =>
  transaction.get("withheld", old.log_entry_id) ? defaultPseudonym(fingerprint) : old.pseudonym;

function checkExpiration({ timestamp }: Transaction, { expiration_date }: Pick<NewKey, "expiration_date">): void {
  if (expiration_date !== null && expiration_date <= timestamp)
    throw invalidInput("/expiration_date", "The expiration date has passed.");
}

export const isRegistered = ({ fingerprint }: PlainKey) =>
  new CairnlogError("already-exists", `The key ${fingerprint} is registered already.`);
