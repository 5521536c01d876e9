/** Credentials, and the facts that follow from a credential's row. */
import type * as contract from "../../contract/identity/accounts.js";
import type { Value } from "../../contract/types.js";
import type { StateReader } from "../../log/state/projection.js";
import type { CredentialRow } from "../../store/schema/rows.js";

/** A credential as it is served. */
export type Credential = Value<typeof contract.Enrolled>["credential"];

/** A credential that is ready to be written if its key is still free. */
export type DraftCredential = Omit<CredentialRow, "user_id" | "status" | "created_at" | "revoked_at">;

/** The credential of a key, whatever its status; undefined when it is on no account. */
export function credentialOf(state: Pick<StateReader, "get">, fingerprint: string): CredentialRow | undefined {
  const bound = state.get("credentialKeys", fingerprint);
  return bound && state.get("credentials", [bound.user_id, bound.credential_id]);
}

/**
 * Whether a credential is hardware-backed. The current roots decide. If a root was removed, or roots were set after a
 * declaration was believed, the credential is no longer hardware-backed.
 * @param hardwareRoots ids of the roots that are trusted now; if there are none, the declarations of credentials are
 *   believed
 */
export function isHardwareBacked(
  { credential_type, hardware_root }: Pick<CredentialRow, "credential_type" | "hardware_root">,
  hardwareRoots: readonly string[],
): boolean {
  if (credential_type !== "hardware") return false;
  return hardwareRoots.length === 0 || (hardware_root !== null && hardwareRoots.includes(hardware_root));
}

/** Whether a key has an active credential that is hardware-backed. */
export function hasHardware(
  state: Pick<StateReader, "get">,
  fingerprint: string,
  hardwareRoots: readonly string[],
): boolean {
  const row = credentialOf(state, fingerprint);
  return row?.status === "active" && isHardwareBacked(row, hardwareRoots);
}
