/** Trust: the trust configuration of the client's key, the graph of endorsements, and the service's trust in a key. */
import * as wire from "../../../engine/contract/signing/trust.js";
import { asLogged, confirmed } from "../base/compare.js";
import { ClientError } from "../base/error.js";
import { pages } from "../base/pages.js";
import type { CreateTrustConfig, Graph, GraphQuery, TrustConfig, TrustStatus } from "../base/types.js";
import { Area } from "../log/area.js";

/** What an answer is that is not the one asked for. */
const CONFIGURATION = "The configuration";

/** A configuration of the client's key. */
export type NewTrustConfig = Omit<CreateTrustConfig, "fingerprint" | "auth">;

export type GraphFilter = Partial<GraphQuery>;

export class TrustClient extends Area {
  /** Stores a configuration in place of the key's active one. @throws ClientError */
  async configure(config: NewTrustConfig): Promise<TrustConfig> {
    const stored = await this.#write("/trust-configs", config);
    const { minimum_threshold, max_depth, decay_per_hop, category_weights } = config;
    const asked = {
      direct_signer_anchors: anchors(config.direct_signer_anchors),
      endorser_anchors: anchors(config.endorser_anchors),
      minimum_threshold,
      max_depth: max_depth ?? DEFAULT_DEPTH,
      decay_per_hop: decay_per_hop ?? DEFAULT_DECAY,
      category_weights: category_weights ?? {},
    };
    return confirmed(stored, { ...asked, status: "active" }, CONFIGURATION);
  }

  /** Revokes the key's active configuration. @throws ClientError */
  async revoke(): Promise<TrustConfig> {
    return confirmed(await this.#write("/trust-configs/revoke", {}), { status: "revoked" }, CONFIGURATION);
  }

  /** A key's newest configuration. @throws ClientError */
  async find(fingerprint: string): Promise<TrustConfig> {
    const config = await this.http.get(wire.TrustConfig, `/trust-configs/${encodeURIComponent(fingerprint)}`);
    return confirmed(config, { fingerprint: asLogged(fingerprint) }, CONFIGURATION);
  }

  /** Every configuration, oldest first. @throws ClientError */
  list(): AsyncGenerator<TrustConfig, void, undefined> {
    const listing = { schema: wire.TrustConfigPage, path: "/trust-configs", member: "trust_configs" } as const;
    return pages(this.http, { ...listing, place: (config) => config.id });
  }

  /** The endorsements around a key, breadth first in both directions. @throws ClientError */
  async graph(fingerprint: string, filter: GraphFilter = {}): Promise<Graph> {
    const graph = await this.http.get(wire.Graph, `/graph/${encodeURIComponent(fingerprint)}`, { ...filter });
    const depths = new Map(graph.nodes.map((node) => [node.fingerprint, node.depth] as const));
    const isOwn = ({ from, to, category, status }: Graph["edges"][number]): boolean =>
      depths.has(from) &&
      depths.has(to) &&
      category === (filter.type ?? category) &&
      status === (filter.status ?? status);
    const isWhole =
      depths.size === graph.nodes.length &&
      new Set(graph.edges.map((edge) => edge.offer_entry_id)).size === graph.edges.length &&
      depths.get(asLogged(fingerprint)) === 0 &&
      graph.depth_reached === Math.max(...depths.values()) &&
      graph.nodes.every(({ depth }, i) => depth >= (graph.nodes[i - 1]?.depth ?? 0)) &&
      graph.depth_reached <= (filter.max_depth ?? graph.depth_reached) &&
      graph.edges.every(isOwn);
    if (!isWhole) throw new ClientError("malformed-answer", `The graph is not one around ${fingerprint}.`);
    return confirmed(graph, { root: asLogged(fingerprint) }, "The graph");
  }

  /** A key's endorsements by status, and the service's trust in it. @throws ClientError */
  async standing(fingerprint: string): Promise<TrustStatus> {
    const path = `/endorsements/${encodeURIComponent(fingerprint)}/status`;
    const standing = await this.http.get(wire.TrustStatus, path);
    const over_capacity = standing.capacity_used > standing.capacity;
    return confirmed(standing, { fingerprint: asLogged(fingerprint), over_capacity }, "The key's standing");
  }

  async #write(path: string, config: object): Promise<TrustConfig> {
    const { fingerprint } = this.auth;
    const stored = await this.auth.postAuthorised(wire.TrustConfig, path, { ...config, fingerprint });
    return confirmed(stored, { fingerprint }, CONFIGURATION);
  }
}

/** The contract's value for a configuration that does not name one. */
const DEFAULT_DEPTH = 4;
const DEFAULT_DECAY = 0.5;

const anchors = (given: NewTrustConfig["direct_signer_anchors"]): TrustConfig["direct_signer_anchors"] =>
  (given ?? []).map(({ fingerprint, weight }) => ({ fingerprint: asLogged(fingerprint), weight }));
