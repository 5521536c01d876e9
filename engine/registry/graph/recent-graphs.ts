/**
 * Graphs as the service answers them. Equal requests at the same time share one traversal. The result is cached for a
 * minute, or until an event names one of its keys, or until a status in it changes with time. The registry's one
 * `Graphs` owns the cache, in the thread that opened the registry.
 */

import { LRUCache } from "lru-cache";
import type { Steps } from "../../base/turns.js";
import type { Clock } from "../../log/state/clock.js";
import { type AskedKeys, isTouchedSince } from "../events/graph.js";
import type { Keys } from "../keys/keys.js";
import type { Slices } from "../shared/slices.js";
import { type GraphParts, type GraphView, viewing } from "../trust/view.js";
import {
  DEFAULT_GRAPH_BOUNDS,
  type Graph,
  type GraphAnswer,
  type GraphBounds,
  type GraphFilter,
  type GraphQuery,
  readGraphFilter,
  traverse,
} from "./graph.js";

export const DEFAULT_GRAPH_CACHE_S = 60;
/**
 * Number of cached graphs, and of nodes and edges in all of them: about 40 MB. Clients decide which are cached.
 */
const MAX_KEPT = 256;
const MAX_KEPT_SIZE = 120_000;

export interface GraphSettings {
  readonly bounds?: GraphBounds;
  /** Seconds for which a graph is cached. */
  readonly cacheSeconds?: number;
  /** Seconds since an arbitrary moment, for the time limit. */
  readonly stopwatch?: () => number;
}

/** With its keys, and those on which its answer depends without showing them. */
interface Kept extends AskedKeys {
  readonly graph: Graph;
  /** The interval in which it is valid, microseconds. */
  readonly from: number;
  readonly until: number;
  /** Size of the log up to which no event has affected it. */
  size: number;
}

export class Graphs {
  readonly #parts: GraphParts;
  readonly #keys: Keys;
  readonly #slices: Slices;
  readonly #clock: Clock;
  readonly #settings: Required<GraphSettings>;
  /** Cached graphs by root and query. */
  readonly #kept = new LRUCache<string, Kept>({ max: MAX_KEPT, maxSize: MAX_KEPT_SIZE, sizeCalculation: sizeOf });
  /** Running traversals, each with the size of the log at which it was requested. */
  readonly #running = new Map<string, { readonly size: number; readonly kept: Promise<Kept> }>();

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly graph: GraphParts;
    readonly keys: Keys;
    readonly slices: Slices;
    readonly clock: Clock;
    readonly settings?: GraphSettings;
  }) {
    this.#parts = parts.graph;
    this.#keys = parts.keys;
    this.#slices = parts.slices;
    this.#clock = parts.clock;
    const stopwatch = () => performance.now() / 1000;
    this.#settings = {
      bounds: DEFAULT_GRAPH_BOUNDS,
      cacheSeconds: DEFAULT_GRAPH_CACHE_S,
      stopwatch,
      ...parts.settings,
    };
  }

  /**
   * The graph around a key (docs/spec §9.6), no older than the cache allows.
   * @throws CairnlogError `not-found` if there is no such key; `invalid-input` with a detail for each invalid filter;
   *   `overloaded`, `closed`
   */
  async around(fingerprint: string, filter: GraphFilter = {}): Promise<GraphAnswer> {
    const query = readGraphFilter(filter);
    const root = this.#keys.find(fingerprint).fingerprint;
    const name = JSON.stringify([root, query]);
    const kept = this.#kept.get(name);
    if (kept && this.#holds(kept)) return { ...kept.graph, cached: true };
    this.#kept.delete(name);
    const { size } = this.#parts.log;
    const running = this.#running.get(name);
    // A traversal that began at an earlier size may lack entries that are now on disk.
    if (running?.size === size) return { ...(await running.kept).graph, cached: false };

    const own = { size, kept: this.#traverse(root, query, size) };
    this.#running.set(name, own);
    try {
      const found = await own.kept;
      this.#kept.set(name, found);
      return { ...found.graph, cached: false };
    } finally {
      if (this.#running.get(name) === own) this.#running.delete(name);
    }
  }

  #traverse(root: string, query: GraphQuery, size: number): Promise<Kept> {
    const { bounds, cacheSeconds, stopwatch } = this.#settings;
    const started = stopwatch();
    const work = function* (view: GraphView): Steps<Kept> {
      const graph = yield* traverse(view, root, query, bounds, () => stopwatch() - started);
      const until = Math.min(view.holdsUntil, view.now + cacheSeconds * 1_000_000);
      return { graph, asked: view.asked, unnamed: view.unnamed, from: view.now, until, size };
    };
    return this.#slices.run(viewing(this.#parts, this.#clock, work));
  }

  #holds(kept: Kept): boolean {
    const now = this.#clock();
    const { log } = this.#parts;
    if (now < kept.from || now >= kept.until || isTouchedSince(log, kept.size, kept)) return false;
    kept.size = log.size;
    return true;
  }
}

const sizeOf = ({ graph, asked, unnamed }: Kept): number =>
  asked.size + unnamed.size + graph.nodes.length + graph.edges.length;
