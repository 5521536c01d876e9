/** The status of a key, computed from its row and the time. */
import { CairnlogError } from "../../error.js";
import type { Transaction } from "../../log/write/commands.js";
import type { StateReader } from "../../log/write/projection.js";
import type { KeyRow } from "../../store/rows.js";

export type KeyStatus = KeyRow["status"] | "expired";

/**
 * The status at `time` (canonical form). No event makes a key expire. A key that was succeeded or revoked keeps that
 * status after its expiration.
 */
export function statusAt(row: Pick<KeyRow, "status" | "expires_at">, time: string): KeyStatus {
  return row.status === "active" && row.expires_at !== null && row.expires_at <= time ? "expired" : row.status;
}

/**
 * Checks that a key with this fingerprint exists. Only the operator key may have no row. Part of a command.
 * @throws CairnlogError `not-found`
 */
export function requireKey(transaction: Transaction, fingerprint: string, operatorFingerprint: string): void {
  if (fingerprint !== operatorFingerprint && !transaction.get("keys", fingerprint)) throw unknownKey();
}

/** The status of a key that exists. Only the operator key may have no row; it is always active. */
export function keyStatus(state: Pick<StateReader, "get">, fingerprint: string, time: string): KeyStatus {
  const row = state.get("keys", fingerprint);
  return row ? statusAt(row, time) : "active";
}

/**
 * Refuses a command on behalf of a key that exists and is not active. Part of a command.
 * @throws CairnlogError `key-not-active`
 */
export function requireActive(transaction: Transaction, fingerprint: string): void {
  const status = keyStatus(transaction, fingerprint, transaction.timestamp);
  if (status !== "active") throw keyNotActive(fingerprint, status);
}

export const unknownKey = (): CairnlogError =>
  new CairnlogError("not-found", "No key with this fingerprint is registered.");

/** The error for operations on a key that has to be active, where the code is not `key-not-active`. */
export const wrongKeyStatus = (fingerprint: string, status: KeyStatus): CairnlogError =>
  new CairnlogError("wrong-key-status", `The key ${fingerprint} is ${status}.`);

export const keyNotActive = (fingerprint: string, status: KeyStatus): CairnlogError =>
  new CairnlogError("key-not-active", `The key ${fingerprint} is ${status}.`);
