/**
 * The paths over which trust reaches a key: what its level is made of, for whoever asks why. They are walked backwards, from
 * the key to anchors, over the endorsements that pass trust on.
 */
import type { Steps } from "../../base/turns.js";
import type { TrustStatus } from "../../contract/signing/trust.js";
import type { Value } from "../../contract/types.js";
import type { EndorsementStatus } from "../../verify/keys/contract.js";
import type { EndorsedTrust } from "./levels.js";
import { HOPS } from "./trust.js";

/** Paths that are told, the best first. */
const MAX_PATHS = 5;
/** Endorsements that are read. Who is endorsed by many decides how many there are; of more, not all paths are seen. */
const MAX_READ = 2_000;

/** The best path to a key through one gate: its keys, and what each but the last passes on (½ · *discount*). */
export type GatePath = Value<typeof TrustStatus>["paths"][number];

/** What is read of the graph. */
interface PathView {
  /** All endorsements that the key has accepted, in any order. */
  accepted(fingerprint: string): Iterable<{ readonly other_fingerprint: string; readonly status: EndorsementStatus }>;
}

/**
 * The best path through each gate, the best gates first, at most `MAX_PATHS`.
 * @param trust of the same moment as the view
 */
export function* pathsTo(
  view: PathView,
  trust: EndorsedTrust,
  anchors: ReadonlySet<string>,
  fingerprint: string,
): Steps<readonly GatePath[]> {
  const best = new Map<string, GatePath>();
  let read = 0;

  /** @param path from the key that is to be endorsed to the asked one */
  function* walk(path: readonly string[], factors: readonly number[]): Steps<void> {
    for (const { other_fingerprint: endorser, status } of view.accepted(path[0]!)) {
      if (++read > MAX_READ) return;
      yield;
      // Nobody whom no anchor reaches brings anything.
      if (status !== "active" || path.includes(endorser) || !trust.of(endorser)) continue;
      const longer = { keys: [endorser, ...path], factors: [trust.passedOn(endorser), ...factors] };
      const known = best.get(path[0]!);
      if (anchors.has(endorser) && (!known || brought(longer) > brought(known))) best.set(path[0]!, longer);
      if (longer.factors.length < HOPS) yield* walk(longer.keys, longer.factors);
    }
  }

  if (!anchors.has(fingerprint) && trust.of(fingerprint)) yield* walk([fingerprint], []);
  return [...best.values()].sort((a, b) => brought(b) - brought(a)).slice(0, MAX_PATHS);
}

/** What comes over a path. */
const brought = ({ factors }: GatePath): number => factors.reduce((product, factor) => product * factor, 1);
