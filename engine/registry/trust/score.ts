/**
 * The score of a signer for one verifier: paths of endorsements from the verifier's anchors to the signer, by the
 * verifier's own configuration (layer 3 of verification). It depends only on the graph and the configuration.
 */
import type { Steps } from "../../base/turns.js";
import type { TrustVerdict } from "../../contract/signing/trust.js";
import type { Value } from "../../contract/types.js";
import type { EndorsementCategory } from "../../verify/keys/contract.js";
import type { TrustPolicy } from "./config.js";
import { complementOfProduct } from "./trust.js";

/** Maximum number of paths that are reported for a signer, best first. All paths count for the score. */
const MAX_PATHS = 5;
/** Endorsements between two pauses. */
const STEP = 64;

/** An active endorsement as a step of a path. */
interface ScoredEdge {
  readonly endorsed: string;
  readonly category: EndorsementCategory;
  readonly offer_entry_id: number;
}

/** The part of the graph that scoring needs. */
export interface ScoreView {
  /** The active endorsements that an active key has issued, and their discount; none for any other key. */
  endorser(fingerprint: string): Steps<{ readonly discount: number; readonly issued: readonly ScoredEdge[] }>;
}

type PathHop = TrustPath["hops"][number];

/** One path by which trust reaches a signer. */
type TrustPath = Value<typeof TrustVerdict>["paths"][number];

export interface SignerScore {
  readonly score: number;
  /** The best paths, at most five. */
  readonly paths: readonly TrustPath[];
}

/** The best path to a key with a given number of hops. */
interface Arrival {
  readonly fingerprint: string;
  readonly score: number;
  readonly hop: PathHop | null;
  readonly before: Arrival | null;
}

type Hops = readonly PathHop[];

/** Endorsements that may still be followed. Whoever follows some takes them away. */
export interface Visits {
  visits: number;
}

/**
 * Scores each signer. A direct anchor scores its weight. For any other signer, the best path from each endorser anchor
 * counts, and the scores of these paths are combined as 1 − Π(1 − s). An endorser anchor has a path to itself without
 * hops.
 * @param budget of followed endorsements, over all anchors; anybody may write the configuration
 * @returns null if there are more endorsements to follow
 */
export function* scoreSigners(
  view: ScoreView,
  policy: TrustPolicy,
  signers: ReadonlySet<string>,
  budget: Visits,
): Steps<ReadonlyMap<string, SignerScore> | null> {
  const scores = new Map<string, SignerScore>();
  const indirect = new Map<string, TrustPath[]>();
  const direct = new Map(policy.direct_signer_anchors.map(({ fingerprint, weight }) => [fingerprint, weight]));
  for (const signer of signers) {
    const weight = direct.get(signer);
    if (weight === undefined) indirect.set(signer, []);
    else {
      const path = { anchor: signer, kind: "direct", weight, score: weight, hops: [] } as const;
      scores.set(signer, { score: weight, paths: [path] });
    }
  }
  if (!indirect.size) return scores;

  const hops = new Map<string, Hops>();
  for (const { fingerprint: anchor, weight } of policy.endorser_anchors) {
    const best = yield* bestPaths(
      view,
      policy,
      { fingerprint: anchor, score: weight, hop: null, before: null },
      hops,
      budget,
    );
    if (!best) return null;
    for (const [signer, paths] of indirect) {
      const arrival = best.get(signer);
      if (arrival && arrival.score > 0)
        paths.push({ anchor, kind: "endorsed", weight, score: arrival.score, hops: hopsTo(arrival) });
    }
  }
  for (const [signer, paths] of indirect) {
    // The score of a single path is taken unchanged, to avoid the rounding of two subtractions.
    const score = paths.length === 1 ? paths[0]!.score : complementOfProduct(paths.map((path) => 1 - path.score));
    paths.sort((a, b) => b.score - a.score || (a.anchor < b.anchor ? -1 : 1));
    scores.set(signer, { score, paths: paths.slice(0, MAX_PATHS) });
  }
  return scores;
}

/**
 * The best path from one anchor to every key within reach; null if `budget` is used up. It proceeds hop by hop. A key
 * is continued from only if this number of hops gives it a higher score than any smaller number. So no path has a
 * cycle.
 */
function* bestPaths(
  view: ScoreView,
  policy: TrustPolicy,
  start: Arrival,
  hops: Map<string, Hops>,
  budget: Visits,
): Steps<ReadonlyMap<string, Arrival> | null> {
  const best = new Map([[start.fingerprint, start]]);
  let frontier: ReadonlyMap<string, Arrival> = new Map(best);
  for (let depth = 0; depth < policy.max_depth && frontier.size; depth++) {
    const next = new Map<string, Arrival>();
    for (const arrival of frontier.values()) {
      const { fingerprint } = arrival;
      const issued = hops.get(fingerprint) ?? (yield* weighedHops(view, policy, fingerprint));
      hops.set(fingerprint, issued);
      for (const hop of issued) {
        if (budget.visits-- <= 0) return null;
        if (budget.visits % STEP === 0) yield;
        const score = arrival.score * hop.factor;
        if (score <= (best.get(hop.to)?.score ?? 0)) continue;
        const found = { fingerprint: hop.to, score, hop, before: arrival };
        const rival = next.get(hop.to);
        if (!rival || isBetter(found, rival)) next.set(hop.to, found);
      }
    }
    for (const [fingerprint, arrival] of next) best.set(fingerprint, arrival);
    frontier = next;
  }
  return best;
}

/** The endorsements that a key has issued, each with its factor. */
function* weighedHops(view: ScoreView, policy: TrustPolicy, from: string): Steps<Hops> {
  const { discount, issued } = yield* view.endorser(from);
  const { category_weights: weights, decay_per_hop: decay } = policy;
  return issued.map(({ endorsed: to, category, offer_entry_id }) => {
    const weight = Object.hasOwn(weights, category) ? weights[category]! : 1;
    return { from, to, category, offer_entry_id, factor: weight * discount * decay };
  });
}

/**
 * Decides between two paths with the same number of hops. Equal scores are decided by key, category and offer, so that
 * the result does not depend on the order in which paths are found.
 */
function isBetter(one: Arrival & { readonly hop: PathHop }, other: Arrival): boolean {
  if (one.score !== other.score) return one.score > other.score;
  const [a, b] = [one.hop, other.hop!];
  if (a.from !== b.from) return a.from < b.from;
  return a.category === b.category ? a.offer_entry_id < b.offer_entry_id : a.category < b.category;
}

function hopsTo(arrival: Arrival): PathHop[] {
  const hops: PathHop[] = [];
  for (let at: Arrival | null = arrival; at?.hop; at = at.before) hops.push(at.hop);
  return hops.reverse();
}
