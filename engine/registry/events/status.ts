/** The status of a key, computed from its row and the time. */
import { CairnlogError } from "../../base/error.js";
import type { Transaction } from "../../log/state/commands.js";
import type { StateReader } from "../../log/state/projection.js";
import type { KeyRow } from "../../store/schema/rows.js";

type KeyStatus = KeyRow["status"] | "expired";

/** The status of a key, and whether the key itself has signed the entry that its expiration comes from. */
export interface KeyStanding {
  readonly status: KeyStatus;
  readonly named: boolean;
}

/**
 * The status at `time` (canonical form). No event makes a key expire. A key that was succeeded or revoked keeps that
 * status after its expiration.
 */
export function statusAt(row: Pick<KeyRow, "status" | "expires_at">, time: string): KeyStatus {
  return row.status === "active" && row.expires_at !== null && row.expires_at <= time ? "expired" : row.status;
}

export const standingOf = (row: Pick<KeyRow, "status" | "expires_at" | "named">, time: string): KeyStanding => ({
  status: statusAt(row, time),
  named: row.named === true,
});

/**
 * The status in words, which complete "the key is …". Anybody may register a key that its holder has not registered, with
 * an expiration of their choice, so the words say whose expiration it is. A key is succeeded or revoked by its holder
 * alone.
 */
export const statusWords = ({ status, named }: KeyStanding): string =>
  status === "expired" && !named
    ? "expired, by the word of an entry that the key has not signed. Whoever holds the key can register it again with its signature (possession_signature; cairnlog register)"
    : status;

/**
 * Checks that a key with this fingerprint exists. Only the operator key may have no row. Part of a command.
 * @throws CairnlogError `not-found`
 */
export function requireKey(transaction: Transaction, fingerprint: string, operatorFingerprint: string): void {
  if (fingerprint !== operatorFingerprint && !transaction.get("keys", fingerprint)) throw unknownKey();
}

/** The standing of a key that exists. Only the operator key may have no row; it is always active. */
export function keyStanding(state: Pick<StateReader, "get">, fingerprint: string, time: string): KeyStanding {
  const row = state.get("keys", fingerprint);
  return row ? standingOf(row, time) : { status: "active", named: false };
}

/**
 * Refuses a command on behalf of a key that exists and is not active. Part of a command.
 * @throws CairnlogError `key-not-active`
 */
export function requireActive(transaction: Transaction, fingerprint: string): void {
  const standing = keyStanding(transaction, fingerprint, transaction.timestamp);
  if (standing.status !== "active") throw keyNotActive(fingerprint, standing);
}

export const unknownKey = (): CairnlogError =>
  new CairnlogError("not-found", "No key with this fingerprint is registered.");

/** The error for operations on a key that has to be active, where the code is not `key-not-active`. */
export const wrongKeyStatus = (fingerprint: string, standing: KeyStanding): CairnlogError =>
  new CairnlogError("wrong-key-status", `The key ${fingerprint} is ${statusWords(standing)}.`);

export const keyNotActive = (fingerprint: string, standing: KeyStanding): CairnlogError =>
  new CairnlogError("key-not-active", `The key ${fingerprint} is ${statusWords(standing)}.`);
