/**
 * Commands that create and revoke trust configurations. They write rows, and no entries. The caller has verified
 * possession of the key.
 */
import { CairnlogError } from "../../base/error.js";
import type * as contract from "../../contract/signing/trust.js";
import type { Value } from "../../contract/types.js";
import { define, type Transaction } from "../../log/state/commands.js";
import type { TrustConfigHead, TrustConfigRow } from "../../store/schema/rows.js";
import { requireActive } from "../events/keys.js";
import { takeFromQuota } from "../shared/quota.js";
import type { TrustPolicy } from "./config.js";

/** A configuration as it is served. */
type TrustConfig = Value<typeof contract.TrustConfig>;

/** The key in `trustConfigHeads` of the row with the newest configuration of all. */
export const NEWEST = "";
const ONE = { amount: 1, hours: 1, unit: " trust configurations" };
/** Ids that are looked at for rows of earlier versions when a configuration is stored. */
const TIDIED_AT_ONCE = 32;

/**
 * Stores a configuration in place of the key's active one. Of each key the newest configuration and the one before have rows;
 * older ones are removed.
 * @throws CairnlogError `key-not-active`, `rate-limited`
 */
export const createTrustConfig = define(
  "trust-config.create",
  (
    transaction: Transaction,
    {
      fingerprint,
      policy,
      quota,
    }: {
      readonly fingerprint: string;
      /** Canonical JSON of a `TrustPolicy`. */
      readonly policy: string;
      /** Maximum number of configurations of one key in an hour; null if there is no limit. */
      readonly quota: number | null;
    },
  ): TrustConfig => {
    requireActive(transaction, fingerprint);
    takeFromQuota(transaction, ["trust-config", fingerprint], quota, ONE);
    tidy(transaction);
    const all = transaction.get("trustConfigHeads", NEWEST);
    const id = (all?.id ?? 0) + 1;
    const head = transaction.get("trustConfigHeads", fingerprint);
    const before = head && transaction.get("trustConfigs", head.id)!;
    if (before?.status === "active") transaction.put("trustConfigs", head!.id, { ...before, status: "superseded" });
    const row: TrustConfigRow = { fingerprint, status: "active", created_at: transaction.timestamp, policy };
    transaction.put("trustConfigs", id, row);
    transaction.put("trustConfigHeads", fingerprint, { id, ...(head && { earlier: head.id }) });
    const isRemoved = remove(transaction, head?.earlier);
    transaction.put("trustConfigHeads", NEWEST, { ...all, id, count: configCount(all) + (isRemoved ? 0 : 1) });
    return servedConfig(id, row);
  },
);

/** How many rows there are. Ids had no gaps as long as rows were not counted. */
export const configCount = (all: TrustConfigHead | undefined): number => all?.count ?? all?.id ?? 0;

/** @returns whether there was one */
function remove(transaction: Transaction, id: number | undefined): boolean {
  if (id !== undefined) transaction.put("trustConfigs", id, undefined);
  return id !== undefined;
}

/**
 * Removes rows that earlier versions have kept, a few for each configuration that is stored. It goes through the ids once,
 * upwards: of the rows of a key before its newest, only the last one that was met stays.
 */
function tidy(transaction: Transaction): void {
  const all = transaction.get("trustConfigHeads", NEWEST);
  if (!all) return;
  const from = (all.tidied ?? 0) + 1;
  const tidied = Math.min(all.id, from + TIDIED_AT_ONCE - 1);
  let count = configCount(all);
  for (const { key, row } of transaction.range("trustConfigs", from, tidied + 1)) {
    const head = transaction.get("trustConfigHeads", row.fingerprint)!;
    const { earlier = 0 } = head;
    if (key >= head.id || key === earlier) continue;
    if (key > earlier) transaction.put("trustConfigHeads", row.fingerprint, { ...head, earlier: key });
    if (remove(transaction, key < earlier ? key : head.earlier)) count--;
  }
  transaction.put("trustConfigHeads", NEWEST, { ...all, count, tidied });
}

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
