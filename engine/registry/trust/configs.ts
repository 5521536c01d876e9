/**
 * Trust configurations (`spec.md`, Trust configurations): one active for each key, superseded by the next. Opinions, not
 * events: they are rows beside the log and no entries of it.
 */
import { CairnlogError } from "../../error.js";
import type { Log } from "../../log/log.js";
import type { TrustConfigRow } from "../../store/schema.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import { members } from "../input.js";
import { type Paging, readPaging } from "../keys/directory.js";
import type { Keys } from "../keys/keys.js";
import { readTrustPolicy, type TrustPolicy } from "./config.js";

/** A configuration as it is served. */
export interface TrustConfig extends TrustPolicy {
  readonly id: number;
  readonly fingerprint: string;
  readonly status: TrustConfigRow["status"];
  readonly created_at: string;
}

export interface TrustConfigPage {
  readonly trust_configs: readonly TrustConfig[];
  readonly page: number;
  readonly per_page: number;
  readonly total: number;
}

/** The row of `trustConfigHeads` that counts. */
const NEWEST = "";

export class TrustConfigs {
  readonly #log: Log;
  readonly #keys: Keys;

  /** Use `openRegistry`. */
  constructor({ log, keys }: { readonly log: Log; readonly keys: Keys }) {
    this.#log = log;
    this.#keys = keys;
  }

  /**
   * Stores a configuration for the key `fingerprint` names, in place of its active one (`POST /trust-configs`), and
   * resolves when it is on disk. The caller has proven that it holds the key.
   * @throws CairnlogError `invalid-input` with a detail for each fault; `not-found` for an unknown key; and as
   *   `Log.execute` does
   */
  async create(config: object): Promise<TrustConfig> {
    const input = members(config);
    const policy = readTrustPolicy(input);
    const { fingerprint } = this.#keys.find(input.fingerprint as string);
    const { value } = await this.#log.execute((transaction) => {
      const id = (transaction.get("trustConfigHeads", NEWEST)?.id ?? 0) + 1;
      const head = transaction.get("trustConfigHeads", fingerprint);
      const earlier = head && transaction.get("trustConfigs", head.id)!;
      if (earlier?.status === "active") transaction.put("trustConfigs", head!.id, { ...earlier, status: "superseded" });
      const created_at = transaction.timestamp;
      const row: TrustConfigRow = { fingerprint, status: "active", created_at, policy: canonicalJson(policy) };
      transaction.put("trustConfigs", id, row);
      transaction.put("trustConfigHeads", fingerprint, { id });
      transaction.put("trustConfigHeads", NEWEST, { id });
      return served(id, row);
    });
    return value;
  }

  /**
   * Revokes the key's active configuration (`POST /trust-configs/revoke`). The caller has proven that it holds the key.
   * @throws CairnlogError `not-found` for an unknown key, or one that never had a configuration; `precondition-failed`
   *   when its last one was revoked already; and as `Log.execute` does
   */
  async revoke(fingerprint: string): Promise<TrustConfig> {
    const key = this.#keys.find(fingerprint).fingerprint;
    const { value } = await this.#log.execute((transaction) => {
      const id = transaction.get("trustConfigHeads", key)?.id;
      const row = id === undefined ? undefined : transaction.get("trustConfigs", id);
      if (id === undefined || !row) throw withoutConfig();
      if (row.status !== "active")
        throw new CairnlogError("precondition-failed", "The key's last trust configuration has been revoked already.");
      const revoked: TrustConfigRow = { ...row, status: "revoked" };
      transaction.put("trustConfigs", id, revoked);
      return served(id, revoked);
    });
    return value;
  }

  /** Every configuration, superseded and revoked ones too, oldest first. @throws CairnlogError `invalid-input` */
  list(paging: Paging = {}): TrustConfigPage {
    const { page, perPage } = readPaging(paging);
    const total = this.#log.row("trustConfigHeads", NEWEST)?.id ?? 0;
    const trust_configs: TrustConfig[] = [];
    const start = (page - 1) * perPage + 1;
    for (let id = start; id <= Math.min(total, start + perPage - 1); id++)
      trust_configs.push(served(id, this.#log.row("trustConfigs", id)!));
    return { trust_configs, page, per_page: perPage, total };
  }

  /**
   * The key's newest configuration, which may have been revoked (`GET /trust-configs/{fingerprint}`).
   * @throws CairnlogError `not-found` for an unknown key, or one that never had a configuration
   */
  get(fingerprint: string): TrustConfig {
    const newest = this.#newest(fingerprint);
    if (!newest) throw withoutConfig();
    return newest;
  }

  /** The key's active configuration, if it has one. @throws CairnlogError `not-found` for an unknown key */
  active(fingerprint: string): TrustConfig | undefined {
    const newest = this.#newest(fingerprint);
    return newest?.status === "active" ? newest : undefined;
  }

  #newest(fingerprint: string): TrustConfig | undefined {
    const head = this.#log.row("trustConfigHeads", this.#keys.find(fingerprint).fingerprint);
    return head && served(head.id, this.#log.row("trustConfigs", head.id)!);
  }
}

const withoutConfig = (): CairnlogError => new CairnlogError("not-found", "The key has no trust configuration.");

const served = (id: number, { fingerprint, status, created_at, policy }: TrustConfigRow): TrustConfig => ({
  id,
  fingerprint,
  ...(JSON.parse(policy) as TrustPolicy),
  status,
  created_at,
});
