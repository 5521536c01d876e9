/** What a credential is, and what follows from its row. */
import type { StateReader } from "../../log/write/projection.js";
import type { CredentialRow } from "../../store/rows.js";

/** A credential as it is answered. */
export interface Credential {
  readonly id: string;
  readonly key_fingerprint: string;
  readonly credential_type: "software" | "hardware";
  readonly device_label: string;
  readonly hardware_backed: boolean;
  readonly status: "active" | "revoked";
  readonly created_at: string;
  readonly revoked_at: string | null;
}

/** A credential that is ready to be written, should its key still be free then. */
export type DraftCredential = Omit<CredentialRow, "user_id" | "status" | "created_at" | "revoked_at">;

/** The credential of a key, whatever its status; undefined when it is on no account. */
export function credentialOf(state: Pick<StateReader, "get">, fingerprint: string): CredentialRow | undefined {
  const bound = state.get("credentialKeys", fingerprint);
  return bound && state.get("credentials", [bound.user_id, bound.credential_id]);
}

/**
 * Whether a credential is hardware-backed. A root that was taken away since, or set where none was, counts as of now:
 * what was believed then is no proof.
 * @param hardwareRoots ids of the roots that are trusted now; without any, what credentials say of themselves is believed
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
