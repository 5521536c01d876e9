/**
 * Trust configurations (`spec.md`, Trust configurations): each key has one active configuration, which the next one
 * supersedes. They are opinions and not events, so they are rows beside the log and not entries of it.
 */
import type { Log } from "../../log/log.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import { members } from "../input.js";
import { type Paging, readPaging } from "../keys/directory.js";
import type { Keys } from "../keys/keys.js";
import {
  createTrustConfig,
  NEWEST,
  revokeTrustConfig,
  servedConfig,
  type TrustConfig,
  withoutConfig,
} from "./commands.js";
import { readTrustPolicy } from "./config.js";

export interface TrustConfigPage {
  readonly trust_configs: readonly TrustConfig[];
  readonly page: number;
  readonly per_page: number;
  readonly total: number;
}

export class TrustConfigs {
  readonly #log: Log;
  readonly #keys: Keys;

  /** Use `openRegistry`. */
  constructor({ log, keys }: { readonly log: Log; readonly keys: Keys }) {
    this.#log = log;
    this.#keys = keys;
  }

  /**
   * Stores a configuration for the key `fingerprint`, in place of its active one (`POST /trust-configs`), and resolves
   * when it is on disk. The caller has verified possession of the key.
   * @throws CairnlogError `invalid-input` with a detail for each fault; `not-found` for an unknown key; and as
   *   `Log.execute` does
   */
  async create(config: object): Promise<TrustConfig> {
    const input = members(config);
    const policy = readTrustPolicy(input);
    const { fingerprint } = this.#keys.find(input.fingerprint as string);
    const { value } = await this.#log.execute(createTrustConfig, { fingerprint, policy: canonicalJson(policy) });
    return value;
  }

  /**
   * Revokes the key's active configuration (`POST /trust-configs/revoke`). The caller has verified possession of the
   * key.
   * @throws CairnlogError `not-found` for an unknown key, or one that never had a configuration; `precondition-failed`
   *   when its last one was revoked already; and as `Log.execute` does
   */
  async revoke(fingerprint: string): Promise<TrustConfig> {
    const key = this.#keys.find(fingerprint).fingerprint;
    const { value } = await this.#log.execute(revokeTrustConfig, { fingerprint: key });
    return value;
  }

  /** Every configuration, including superseded and revoked ones, oldest first. @throws CairnlogError `invalid-input` */
  list(paging: Paging = {}): TrustConfigPage {
    const { page, perPage } = readPaging(paging);
    const total = this.#log.row("trustConfigHeads", NEWEST)?.id ?? 0;
    const trust_configs: TrustConfig[] = [];
    const start = (page - 1) * perPage + 1;
    for (let id = start; id <= Math.min(total, start + perPage - 1); id++)
      trust_configs.push(servedConfig(id, this.#log.row("trustConfigs", id)!));
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
    return head && servedConfig(head.id, this.#log.row("trustConfigs", head.id)!);
  }
}
