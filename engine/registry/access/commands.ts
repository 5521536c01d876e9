/** The commands of access: passwords, the secret of challenges, and their use. */
import { CairnlogError } from "../../base/error.js";
import { define, type Transaction } from "../../log/state/commands.js";
import { requireActive } from "../events/keys.js";

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

/** The place of the one row of `secrets` for challenges. */
export const CHALLENGE_SECRET = "challenges";

/** Keeps `secret` if the log has none. @returns the one that it has */
export const keepChallengeSecret = define(
  "challenge.keep-secret",
  (transaction: Transaction, { secret }: { readonly secret: Uint8Array }): Uint8Array => {
    const kept = transaction.get("secrets", CHALLENGE_SECRET);
    if (kept) return kept.secret;
    transaction.put("secrets", CHALLENGE_SECRET, { secret });
    return secret;
  },
);

/** The key of a row in `usedChallenges`. */
type UsedChallengeKey = readonly [expires: number, id: string];

/**
 * Uses a challenge up, and forgets some that could not be taken any more. @throws CairnlogError `challenge-used`
 */
export const useChallenge = define(
  "challenge.use",
  (
    transaction: Transaction,
    { challenge, forgotten }: { readonly challenge: UsedChallengeKey; readonly forgotten: readonly UsedChallengeKey[] },
  ): void => {
    if (transaction.get("usedChallenges", [...challenge])) throw usedChallenge();
    transaction.put("usedChallenges", [...challenge], { used_at: transaction.timestamp });
    for (const key of forgotten) transaction.put("usedChallenges", [...key], undefined);
  },
);

export function usedChallenge(): CairnlogError {
  return new CairnlogError("challenge-used", "The challenge has been used already. Ask for a new one.");
}

export function wrongPassword(): CairnlogError {
  return new CairnlogError("forbidden", "The password is wrong.");
}
