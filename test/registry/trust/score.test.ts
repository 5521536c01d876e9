/** Scores of signers for a verifier, compared with a search over all paths. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TrustPolicy } from "#cairnlog/engine/registry/trust/config.js";
import { type ScoreView, type SignerScore, scoreSigners } from "#cairnlog/engine/registry/trust/score.js";
import { HUMAN, INSTITUTIONAL } from "../endorsements/endorsementcase.js";
import { complete } from "./trustmodel.js";

type Category = typeof HUMAN | typeof INSTITUTIONAL;

interface Network {
  /** Discount of each key. */
  readonly discounts: readonly number[];
  readonly edges: readonly { readonly from: number; readonly to: number; readonly category: Category }[];
  readonly policy: TrustPolicy;
}

const PLENTY = 1_000_000;
const fraction = fc.oneof(fc.constantFrom(0, 0.5, 1), fc.double({ min: 0, max: 1, noNaN: true }));

const networks: fc.Arbitrary<Network> = fc.integer({ min: 2, max: 6 }).chain((count) => {
  const key = fc.nat(count - 1);
  const anchors = fc.uniqueArray(fc.record({ fingerprint: key.map(String), weight: fraction }), {
    maxLength: 3,
    selector: ({ fingerprint }) => fingerprint,
  });
  return fc.record({
    discounts: fc.array(fraction, { minLength: count, maxLength: count }),
    edges: fc.array(fc.record({ from: key, to: key, category: fc.constantFrom<Category>(HUMAN, INSTITUTIONAL) }), {
      maxLength: 10,
    }),
    policy: fc.record({
      direct_signer_anchors: anchors,
      endorser_anchors: anchors,
      minimum_threshold: fraction,
      max_depth: fc.integer({ min: 1, max: 4 }),
      decay_per_hop: fraction,
      category_weights: fc.oneof(
        fc.constant({}),
        fraction.map((weight) => ({ [HUMAN]: weight })),
      ),
    }),
  });
});

function scored(
  { discounts, edges, policy }: Network,
  name: (key: number) => string = String,
  maxVisits = PLENTY,
): (SignerScore | undefined)[] | null {
  const key = (fingerprint: string) => discounts.findIndex((_, i) => name(i) === fingerprint);
  const view: ScoreView = {
    *endorser(fingerprint) {
      yield;
      const from = key(fingerprint);
      const issued = edges.flatMap((edge, i) =>
        edge.from === from ? [{ endorsed: name(edge.to), category: edge.category, offer_entry_id: i }] : [],
      );
      return { discount: discounts[from]!, issued };
    },
  };
  const renamed = (anchors: TrustPolicy["endorser_anchors"]) =>
    anchors.map(({ fingerprint, weight }) => ({ fingerprint: name(Number(fingerprint)), weight }));
  const { direct_signer_anchors: direct, endorser_anchors: endorsers } = policy;
  const own = { ...policy, direct_signer_anchors: renamed(direct), endorser_anchors: renamed(endorsers) };
  const signers = new Set(discounts.map((_, i) => name(i)));
  const scores = complete(scoreSigners(view, own, signers, { visits: maxVisits }));
  return scores && discounts.map((_, i) => scores.get(name(i)));
}

/** The best product over all walks with at most `hops` more steps from `at` to `signer`. */
function bestWalk(network: Network, at: number, signer: number, product: number, hops: number): number {
  const { discounts, edges, policy } = network;
  const weights: Readonly<Record<string, number>> = policy.category_weights;
  const onward = edges.filter(({ from }) => hops > 0 && from === at);
  const found = onward.map(({ to, category }) =>
    bestWalk(network, to, signer, product * (weights[category] ?? 1) * discounts[at]! * policy.decay_per_hop, hops - 1),
  );
  return Math.max(at === signer ? product : 0, ...found);
}

function workedOut(network: Network, signer: number): number {
  const { direct_signer_anchors, endorser_anchors, max_depth } = network.policy;
  const direct = direct_signer_anchors.find(({ fingerprint }) => Number(fingerprint) === signer);
  if (direct) return direct.weight;
  const missing = endorser_anchors.map(
    ({ fingerprint, weight }) => 1 - bestWalk(network, Number(fingerprint), signer, weight, max_depth),
  );
  return 1 - missing.reduce((product, factor) => product * factor, 1);
}

describe("the score of a signer", () => {
  it("combines the best path from each anchor, on any graph", () => {
    fc.assert(
      fc.property(networks, (network) => {
        for (const [signer, score] of scored(network)!.entries())
          expect(score!.score).toBeCloseTo(workedOut(network, signer), 12);
      }),
      { numRuns: 400 },
    );
  });

  it("is the product along the hops that are reported, which lead from the anchor to the signer", () => {
    fc.assert(
      fc.property(networks, (network) => {
        for (const [signer, score] of scored(network)!.entries())
          for (const { anchor, kind, weight, score: product, hops } of score!.paths) {
            expect(hops.length).toBeLessThanOrEqual(kind === "direct" ? 0 : network.policy.max_depth);
            expect([anchor, ...hops.map(({ to }) => to)]).toEqual([...hops.map(({ from }) => from), String(signer)]);
            expect(hops.reduce((value, { factor }) => value * factor, weight)).toBe(product);
          }
      }),
      { numRuns: 200 },
    );
  });

  it("is the same to the last bit for all names of keys and every order of endorsements", () => {
    fc.assert(
      fc.property(networks, (network) => {
        const { edges, policy } = network;
        const { endorser_anchors: anchors } = policy;
        const turned = {
          ...network,
          edges: edges.toReversed(),
          policy: { ...policy, endorser_anchors: anchors.toReversed() },
        };
        const scores = (of: (SignerScore | undefined)[] | null) => of!.map((score) => score!.score);
        expect(scores(scored(turned, (key) => `key ${9 - key}`))).toEqual(scores(scored(network)));
      }),
      { numRuns: 200 },
    );
  });

  it("reports the same paths for every order of endorsements", () => {
    const between = (from: number, to: number) => ({ from, to, category: HUMAN }) as const;
    const edges = [between(0, 1), between(0, 2), between(1, 3), between(2, 3)];
    const anchor = { fingerprint: "0", weight: 1 };
    const policy = {
      direct_signer_anchors: [],
      endorser_anchors: [anchor],
      minimum_threshold: 0,
      max_depth: 4,
      decay_per_hop: 0.5,
      category_weights: {},
    };
    for (const order of [edges, edges.toReversed()]) {
      const [, , , score] = scored({ discounts: [1, 1, 1, 1], edges: order, policy })!;
      expect(score!.paths.map(({ hops }) => hops.map(({ to }) => to))).toEqual([["1", "3"]]);
      expect(score!.score).toBe(0.25);
    }
  });

  it("is not computed if it would need more endorsements than allowed", () => {
    const edges = [1, 2, 3].map((to) => ({ from: 0, to, category: HUMAN }) as const);
    const policy = {
      direct_signer_anchors: [],
      endorser_anchors: [{ fingerprint: "0", weight: 1 }],
      minimum_threshold: 0,
      max_depth: 1,
      decay_per_hop: 1,
      category_weights: {},
    };
    const network = { discounts: [1, 1, 1, 1], edges, policy };
    expect(scored(network, String, 3)).not.toBeNull();
    expect(scored(network, String, 2)).toBeNull();
  });
});
