/**
 * Commands that create and revoke trust configurations. They write rows, and no entries. The caller has verified
 * possession of the key.
 */
import { CairnlogError } from "../../error.js";
import { define, type Transaction } from "../../log/write/commands.js";
import type { TrustConfigRow } from "../../store/rows.js";
import type { TrustPolicy } from "./config.js";

/** A configuration as it is served. */
export interface TrustConfig extends TrustPolicy {
  readonly id: number;
  readonly fingerprint: string;
  readonly status: TrustConfigRow["status"];
  readonly created_at: string;
}

/** The key in `trustConfigHeads` of the row with the newest configuration of all. */
export const NEWEST = "";

/** Stores a configuration in place of the key's active one. */
export const createTrustConfig = define(
  "trust-config.create",
  (
    transaction: Transaction,
    {
      fingerprint,
      policy,
    }: {
      readonly fingerprint: string;
      /** Canonical JSON of a `TrustPolicy`. */
      readonly policy: string;
    },
  ): TrustConfig => {
    const id = (transaction.get("trustConfigHeads", NEWEST)?.id ?? 0) + 1;
    const head = transaction.get("trustConfigHeads", fingerprint);
    const earlier = head && transaction.get("trustConfigs", head.id)!;
    if (earlier?.status === "active") transaction.put("trustConfigs", head!.id, { ...earlier, status: "superseded" });
    const row: TrustConfigRow = { fingerprint, status: "active", created_at: transaction.timestamp, policy };
    transaction.put("trustConfigs", id, row);
    transaction.put("trustConfigHeads", fingerprint, { id });
    transaction.put("trustConfigHeads", NEWEST, { id });
    return servedConfig(id, row);
  },
);

/**
 * @throws CairnlogError `not-found` for a key that never had a configuration; `precondition-failed` when it is revoked
 */
export const revokeTrustConfig = define(
  "trust-config.revoke",
  (transaction: Transaction, { fingerprint }: { readonly fingerprint: string }): TrustConfig => {
    const id = transaction.get("trustConfigHeads", fingerprint)?.id;
    const row = id === undefined ? undefined : transaction.get("trustConfigs", id);
    if (id === undefined || !row) throw withoutConfig();
    if (row.status !== "active")
      throw new CairnlogError("precondition-failed", "The key's last trust configuration has been revoked already.");
    const revoked: TrustConfigRow = { ...row, status: "revoked" };
    transaction.put("trustConfigs", id, revoked);
    return servedConfig(id, revoked);
  },
);

export const withoutConfig = (): CairnlogError => new CairnlogError("not-found", "The key has no trust configuration.");

export const servedConfig = (id: number, { fingerprint, status, created_at, policy }: TrustConfigRow): TrustConfig => ({
  id,
  fingerprint,
  ...(JSON.parse(policy) as TrustPolicy),
  status,
  created_at,
});
