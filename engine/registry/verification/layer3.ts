/**
 * Layer 3 of verification: whether a verifier trusts the signers, by its own trust configuration and the currently
 * active endorsements (docs/spec §8.3). Different verifiers may get different results.
 */

import type * as contract from "../../contract/signing/trust.js";
import type { Value } from "../../contract/types.js";
import type { TrustPolicy } from "../trust/config.js";
import { type ScoreView, type SignerScore, scoreSigners, type Visits } from "../trust/score.js";
import type { TrustJudge, TrustService } from "../trust/service.js";
import { reaches } from "../trust/trust.js";
import type { GraphView } from "../trust/view.js";
import type { LayerResult } from "./standing.js";

/** Maximum number of endorsements that one request follows: a few seconds of work, in slices. */
const MAX_VISITS = 1_000_000;
/** The endorsements that one request may follow, however many documents it has verified. */
export const visitsOfRequest = (): Visits => ({ visits: MAX_VISITS });

/** The result for one signer. Never `invalid`: trust is an opinion, and a missing opinion does not make a signature invalid. */
type TrustVerdict = Value<typeof contract.TrustVerdict>;

/** Layer 3 of a verification: the result for each signer, and for all of them together. */
interface TrustAssessment {
  readonly summary: LayerResult;
  of(signer: string): TrustVerdict;
}

/**
 * Judges every signer by one policy.
 * @param policy null if the verifier has no active configuration: then nothing is evaluated
 * @param budget of the request
 * @throws CairnlogError `overloaded`, `closed`
 */
export async function assessTrust(
  trust: Pick<TrustService, "query">,
  policy: TrustPolicy | null,
  signers: readonly string[],
  budget: Visits,
): Promise<TrustAssessment> {
  if (!policy) return notEvaluated("The verifier has no active trust configuration.");
  if (!signers.length) return notEvaluated("There is no signer to judge.");
  // Nothing is read for the parts behind the one that has used it up.
  const scores =
    budget.visits > 0 &&
    (await trust.query((view, judge) => scoreSigners(scoreView(view, judge), policy, new Set(signers), budget)));
  if (!scores) return notEvaluated("The anchors reach more endorsements than one request follows.");
  const verdicts = new Map([...scores].map(([signer, score]) => [signer, verdict(score, policy.minimum_threshold)]));
  const of = (signer: string) => verdicts.get(signer)!;
  const below = signers.filter((signer) => of(signer).status !== "valid").length;
  const summary: LayerResult = below
    ? { status: "warning", details: `${below} of ${signers.length} attestation(s) have a signer below the threshold.` }
    : { status: "valid", details: "Every signer reaches the verifier's threshold." };
  return { summary, of };
}

function notEvaluated(details: string): TrustAssessment {
  const summary = { status: "not_evaluated", details } as const;
  return { summary, of: () => ({ ...summary, score: null, threshold: null, paths: [] }) };
}

function verdict({ score, paths }: SignerScore, threshold: number): TrustVerdict {
  const isTrusted = reaches(score, threshold);
  const comparison = isTrusted ? "reaches" : "is below";
  const details = `The score ${shown(score)} ${comparison} the verifier's threshold of ${shown(threshold)}.`;
  return { status: isTrusted ? "valid" : "warning", details, score, threshold, paths };
}

/** For people; programs read the numbers. */
const shown = (value: number): string => `${Number(value.toPrecision(4))}`;

/** The endorsements of active keys, discounted as the service discounts them. */
const scoreView = (view: GraphView, judge: TrustJudge): ScoreView => ({
  *endorser(fingerprint) {
    if (!view.isActive(fingerprint)) return { discount: 0, issued: [] };
    const { discount } = yield* judge(view, fingerprint);
    const edges = yield* view.active(fingerprint);
    const issued = edges.map(({ other_fingerprint: endorsed, category, offer_entry_id }) => ({
      endorsed,
      category,
      offer_entry_id,
    }));
    return { discount, issued };
  },
});
