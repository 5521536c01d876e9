/** Trust: one's own configuration, the graph of endorsements, and how the service trusts a key. */
import * as wire from "../../wire/signing/trust.js";
import type { Http } from "../http.js";
import { pages } from "../pages.js";
import type { Authority } from "../session.js";
import type { CreateTrustConfig, Graph, GraphQuery, TrustConfig, TrustStatus } from "../types.js";

/** A configuration of one's own key. */
export type NewTrustConfig = Omit<CreateTrustConfig, "fingerprint" | "auth">;

export type GraphFilter = Partial<GraphQuery>;

export class TrustClient {
  readonly #http: Http;
  readonly #authority: Authority;

  constructor(http: Http, authority: Authority) {
    this.#http = http;
    this.#authority = authority;
  }

  /** Stores a configuration in place of the key's active one. @throws ClientError */
  configure(config: NewTrustConfig): Promise<TrustConfig> {
    return this.#write("/trust-configs", config);
  }

  /** Revokes the key's active configuration. @throws ClientError */
  revoke(): Promise<TrustConfig> {
    return this.#write("/trust-configs/revoke", {});
  }

  /** A key's newest configuration. @throws ClientError */
  find(fingerprint: string): Promise<TrustConfig> {
    return this.#http.get(wire.TrustConfig, `/trust-configs/${encodeURIComponent(fingerprint)}`);
  }

  /** Every configuration, oldest first. @throws ClientError */
  list(): AsyncGenerator<TrustConfig, void, undefined> {
    return pages(this.#http, { schema: wire.TrustConfigPage, path: "/trust-configs", member: "trust_configs" });
  }

  /** The endorsements around a key, breadth first in both directions. @throws ClientError */
  graph(fingerprint: string, filter: GraphFilter = {}): Promise<Graph> {
    return this.#http.get(wire.Graph, `/graph/${encodeURIComponent(fingerprint)}`, { ...filter });
  }

  /** A key's endorsements by status, and how the service trusts it. @throws ClientError */
  standing(fingerprint: string): Promise<TrustStatus> {
    return this.#http.get(wire.TrustStatus, `/endorsements/${encodeURIComponent(fingerprint)}/status`);
  }

  async #write(path: string, config: object): Promise<TrustConfig> {
    const { fingerprint } = this.#authority;
    const { auth, headers } = await this.#authority.forWrite();
    return this.#http.post(wire.TrustConfig, path, { ...config, fingerprint, ...auth }, headers);
  }
}
