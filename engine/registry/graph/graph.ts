/**
 * Traversal of the endorsement graph (`GET /graph/{fingerprint}`): breadth first from one key, through all endorsements
 * that it received or issued and that pass the filters. Runs in slices while appends continue. Clients decide how large
 * a graph is, so nodes, edges and time are limited.
 */

import type { Steps } from "../../base/turns.js";
import type * as contract from "../../contract/signing/trust.js";
import type { Value } from "../../contract/types.js";
import {
  DEFAULT_GRAPH_DEPTH,
  ENDORSEMENT_CATEGORIES,
  ENDORSEMENT_STATUSES,
  type EndorsementCategory,
  type EndorsementStatus,
  MAX_GRAPH_DEPTH,
} from "../../verify/keys/contract.js";
import { requestedTime } from "../../verify/tree/entry.js";
import { Faults } from "../shared/input.js";
import type { EndorsementDirection, EndorsementEdge, GraphView } from "../trust/view.js";

/** Rows between two pauses. */
const STEP = 16;
const DAY = /^\d{4}-\d\d-\d\d$/;
const DIRECTIONS = ["issued", "received"] as const satisfies readonly EndorsementDirection[];

/**
 * Selects the endorsements that are followed. An absent filter lets all through; an endorsement must pass every filter
 * that is given.
 */
export type GraphFilter = Partial<Value<typeof contract.GraphQuery>>;

type GraphNode = Graph["nodes"][number];

type GraphEdge = Graph["edges"][number];

/** A graph, and whether it was traversed for an earlier request. */
export type GraphAnswer = Value<typeof contract.Graph>;

export type Graph = Omit<GraphAnswer, "cached">;

export interface GraphBounds {
  readonly maxNodes: number;
  /** A dense graph has many more edges than nodes. */
  readonly maxEdges: number;
  readonly seconds: number;
}

export const DEFAULT_GRAPH_BOUNDS: GraphBounds = { maxNodes: 10_000, maxEdges: 50_000, seconds: 10 };

/** A filter that has been checked: comparable texts, moments in canonical form. */
export interface GraphQuery {
  readonly maxDepth: number;
  readonly category: EndorsementCategory | null;
  readonly status: EndorsementStatus | null;
  readonly institution: string | null;
  readonly since: string | null;
  readonly until: string | null;
}

/** @throws CairnlogError `invalid-input` with a detail for each invalid filter */
export function readGraphFilter(filter: GraphFilter): GraphQuery {
  const faults = new Faults();
  const { max_depth: maxDepth = DEFAULT_GRAPH_DEPTH } = filter;
  if (!Number.isSafeInteger(maxDepth) || maxDepth < 0 || maxDepth > MAX_GRAPH_DEPTH)
    faults.add("/max_depth", `It must be a whole number from 0 to ${MAX_GRAPH_DEPTH}.`);
  const query = {
    maxDepth,
    category: oneOf(ENDORSEMENT_CATEGORIES, filter.type, "/type", faults),
    status: oneOf(ENDORSEMENT_STATUSES, filter.status, "/status", faults),
    institution: filter.institution === undefined ? null : folded(filter.institution),
    since: readMoment(filter.since, "T00:00:00Z", "/since", faults),
    until: readMoment(filter.until, "T23:59:59.999999Z", "/until", faults),
  };
  faults.check();
  return query;
}

/**
 * Walks the graph from `root`, which is a key of the view.
 * @param elapsed returns the seconds since the request
 */
export function* traverse(
  view: GraphView,
  root: string,
  query: GraphQuery,
  bounds: GraphBounds,
  elapsed: () => number,
): Steps<Graph> {
  const nodes = new Map<string, GraphNode>([[root, nodeOf(view, root, 0)!]]);
  const edges = new Map<number, GraphEdge>();
  const queue = [...nodes.values()];
  let seen = 0;
  let truncated = false;
  // The queue grows during the walk. Endorsements of keys at the last depth are not read.
  walk: for (const { fingerprint, depth } of queue) {
    if (depth === query.maxDepth) break;
    for (const direction of DIRECTIONS)
      for (const edge of view.edges(fingerprint, direction)) {
        if (++seen % STEP === 0) {
          yield;
          truncated = elapsed() >= bounds.seconds;
          if (truncated) break walk;
        }
        if (edges.has(edge.offer_entry_id) || !passes(edge, query)) continue;
        const other = edge.other_fingerprint;
        const node = nodes.get(other) ?? nodeOf(view, other, depth + 1);
        // Imported history may name keys that were never registered.
        if (!node) continue;
        const isNew = !nodes.has(other);
        truncated = edges.size === bounds.maxEdges || (isNew && nodes.size === bounds.maxNodes);
        if (truncated) break walk;
        if (isNew) queue.push(node);
        nodes.set(other, node);
        edges.set(edge.offer_entry_id, edgeOf(edge, fingerprint, direction));
      }
    yield;
  }
  return {
    root,
    nodes: queue,
    edges: [...edges.values()],
    truncated,
    depth_reached: queue.at(-1)!.depth,
  };
}

function passes(edge: EndorsementEdge, { category, status, institution, since, until }: GraphQuery): boolean {
  if (category !== null && edge.category !== category) return false;
  if (status !== null && edge.status !== status) return false;
  if (institution !== null && (edge.institution === null || folded(edge.institution) !== institution)) return false;
  const begin = sinceOf(edge);
  return (since === null || begin >= since) && (until === null || begin <= until);
}

const sinceOf = (edge: EndorsementEdge): string => edge.accepted_at ?? edge.offered_at;

function edgeOf(edge: EndorsementEdge, fingerprint: string, direction: EndorsementDirection): GraphEdge {
  const { other_fingerprint: other, category, status, offer_entry_id, ended_at, valid_until } = edge;
  const [from, to] = direction === "issued" ? [fingerprint, other] : [other, fingerprint];
  return { from, to, category, status, offer_entry_id, since: sinceOf(edge), until: ended_at ?? valid_until };
}

function nodeOf(view: GraphView, fingerprint: string, depth: number): GraphNode | undefined {
  const key = view.key(fingerprint);
  return key && { fingerprint, pseudonym: key.pseudonym, status: key.status, named: key.named, depth };
}

/** Names that differ only in case or in the composition of letters are equal. */
const folded = (name: string): string => name.normalize("NFC").toLowerCase();

function oneOf<T extends string>(
  values: readonly T[],
  value: string | undefined,
  path: string,
  faults: Faults,
): T | null {
  if (value === undefined) return null;
  const known = values.find((name) => name === value);
  if (known === undefined) faults.add(path, `It must be one of ${values.join(", ")}.`);
  return known ?? null;
}

function readMoment(text: string | undefined, timeOfDay: string, path: string, faults: Faults): string | null {
  if (text === undefined) return null;
  const moment = requestedTime(DAY.test(text) ? text + timeOfDay : text);
  if (moment === undefined) faults.add(path, "It must be a date (2025-01-31) or a date and time with an offset.");
  return moment ?? null;
}
