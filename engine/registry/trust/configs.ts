/**
 * Trust configurations (docs/spec §9.5): each key has one active configuration, which the next one
 * supersedes. They are opinions and not events, so they are rows beside the log and not entries of it.
 */
import type * as contract from "../../contract/signing/trust.js";
import type { Value } from "../../contract/types.js";
import type { Log } from "../../log/log.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import { type PageRequest, readPaging, skippedBefore } from "../keys/directory.js";
import type { Keys } from "../keys/keys.js";
import { members } from "../shared/input.js";
import type { Caller, Writes } from "../writes/writes.js";
import { configCount, createTrustConfig, NEWEST, revokeTrustConfig, servedConfig, withoutConfig } from "./commands.js";
import { readTrustPolicy } from "./config.js";

type TrustConfig = Value<typeof contract.TrustConfig>;
type TrustConfigPage = Value<typeof contract.TrustConfigPage>;

/** Default maximum of configurations that one key may store in an hour. */
export const DEFAULT_TRUST_CONFIG_QUOTA = 20;

interface Parts {
  readonly log: Log;
  readonly writes: Writes;
  readonly keys: Keys;
  /** Maximum number of configurations of one key in an hour; null if there is no limit. */
  readonly quota: number | null;
}

export class TrustConfigs {
  readonly #parts: Parts;

  /** Use `openRegistry`. */
  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Stores a configuration for the key `fingerprint`, in place of its active one (`POST /trust-configs`), and resolves
   * when it is on disk. The caller has verified possession of the key.
   * @throws CairnlogError `invalid-input` with a detail for each fault; `not-found` for an unknown key; `key-not-active`;
   *   `rate-limited`; and as `Log.execute` does
   */
  async create(config: object, client: Caller | null = null): Promise<TrustConfig> {
    const input = members(config);
    const policy = readTrustPolicy(input);
    const { fingerprint } = this.#parts.keys.find(input.fingerprint as string);
    const { value } = await this.#parts.writes.execute(
      createTrustConfig,
      { fingerprint, policy: canonicalJson(policy), quota: this.#parts.quota },
      client,
      fingerprint,
    );
    return value;
  }

  /**
   * Revokes the key's active configuration (`POST /trust-configs/revoke`). The caller has verified possession of the
   * key.
   * @throws CairnlogError `not-found` for an unknown key, or one that never had a configuration; `precondition-failed`
   *   when its last one was revoked already; and as `Log.execute` does
   */
  async revoke(fingerprint: string, client: Caller | null = null): Promise<TrustConfig> {
    const key = this.#parts.keys.find(fingerprint).fingerprint;
    const { value } = await this.#parts.writes.execute(revokeTrustConfig, { fingerprint: key }, client, key);
    return value;
  }

  /** Every configuration that is kept, including superseded and revoked ones, oldest first. @throws CairnlogError `invalid-input` */
  list(paging: PageRequest = {}): TrustConfigPage {
    const { page, per_page } = readPaging(paging);
    const total = configCount(this.#parts.log.row("trustConfigHeads", NEWEST));
    const offset = skippedBefore({ page, per_page }, total, "GET /trust-configs/{fingerprint} gives that of a key.");
    if (offset === null) return { trust_configs: [], page, per_page, total };
    const rows = this.#parts.log.rows("trustConfigs", 0, Number.MAX_SAFE_INTEGER, { offset, limit: per_page });
    const trust_configs = rows.map(({ key, row }) => servedConfig(key, row));
    return { trust_configs, page, per_page, total };
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
    const head = this.#parts.log.row("trustConfigHeads", this.#parts.keys.find(fingerprint).fingerprint);
    return head && servedConfig(head.id, this.#parts.log.row("trustConfigs", head.id)!);
  }
}
