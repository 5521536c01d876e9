/**
 * The trust that the service puts in keys: a formula over the endorsement graph, in rounds (`docs/trust.md` explains it
 * to a person). Only *p*, what endorsements bring, travels along them, and only from anchors: keys that no anchor
 * reaches give one another nothing, however many they are. So the work goes forward from the anchors, four hops far.
 */
import type { Steps } from "../slices.js";

/** Rounds, and so the hops that trust travels. */
const ROUNDS = 4;
/** What an active key has of itself. */
const OWN_TRUST = 0.1;
/** Part of an endorser's trust that an endorsement passes on. */
const PASSED_ON = 0.5;
/** Endorsements that full trust allows a key beyond the base capacity. */
const CAPACITY_SPAN = 45;
/**
 * Numbers that differ by no more than this differ by rounding. Without it, a capacity that is a whole number by the
 * formula could come out as the one below.
 */
const ROUNDING = 1e-9;
/** Edges between two pauses. */
const STEP = 64;

/** The endorsement graph at one moment. */
export interface TrustView {
  /** Whether the key exists and is active. */
  isActive(fingerprint: string): boolean;
  /** Whether an active endorser of the key has a live alert on it. */
  isAlerted(fingerprint: string): Steps<boolean>;
  /** The endorsed key of every active endorsement that the key has issued, one for each endorsement, in any order. */
  issued(fingerprint: string): Steps<readonly string[]>;
}

export interface TrustRules {
  /** Fingerprints; which of them are active is for the view to say. */
  readonly anchors: readonly string[];
  readonly baseCapacity: number;
}

/** What follows for one key. */
export interface Capacity {
  /** From 0 to 1. */
  readonly level: number;
  /** Active endorsements that it can issue before they are discounted. */
  readonly capacity: number;
  /** Factor on each of its endorsements: 1 up to capacity. */
  readonly discount: number;
}

/** Keys within reach of the anchors, by number. */
interface Reach {
  /** Numbers; -1 for a key that is not active, to which nothing travels. */
  readonly numbers: Map<string, number>;
  readonly fingerprints: string[];
  /** Hops from the nearest anchor. */
  readonly hops: number[];
  /** *b* of the keys that endorse others. */
  readonly own: number[];
  /** Active endorsements issued. */
  readonly used: number[];
  /** Endorsers, one for each endorsement. */
  readonly endorsers: number[][];
}

/** *b*: what a key has without any endorsement. */
export const ownTrust = (isActive: boolean, isAlerted: boolean): number => (isActive && !isAlerted ? OWN_TRUST : 0);

/**
 * Level, capacity and discount of a key.
 * @param own *b*
 * @param endorsed *p*
 * @param used active endorsements that it has issued
 */
export function capacityOf(own: number, endorsed: number, used: number, baseCapacity: number): Capacity {
  // 1 − (1 − b)·(1 − p), multiplied out: with p = 0 it is b itself, to the last bit.
  const level = own + (1 - own) * endorsed;
  const capacity = Math.floor(baseCapacity + CAPACITY_SPAN * level + ROUNDING);
  return { level, capacity, discount: used > capacity ? capacity / used : 1 };
}

/** Whether `value` is not below `limit`, but for rounding. */
export const reaches = (value: number, limit: number): boolean => value + ROUNDING >= limit;

/** 1 − the product of `factors`, the same to the last bit in whatever order they come. */
export function complementOfProduct(factors: readonly number[]): number {
  let product = 1;
  for (const factor of Float64Array.from(factors).sort()) product *= factor;
  return 1 - product;
}

/**
 * *p* after the last round, of every key for which it is not 0. Depends on the graph alone: neither the order in which
 * the view gives endorsements nor the names of the keys change a bit of it.
 */
export function* endorsedTrust(view: TrustView, rules: TrustRules): Steps<Map<string, number>> {
  const reach = yield* explore(view, rules.anchors);
  const { fingerprints, hops, own, used, endorsers } = reach;
  let trust = Float64Array.from(hops, (hop) => (hop === 0 ? 1 : 0));
  for (let round = 0; round < ROUNDS; round++) {
    const next = trust.slice();
    let edges = 0;
    for (let key = 0; key < hops.length; key++) {
      // Nothing has come further than one hop a round; anchors keep what they have.
      if (hops[key] === 0 || hops[key]! > round + 1) continue;
      const factors: number[] = [];
      for (const endorser of endorsers[key]!) {
        const passing = trust[endorser]!;
        if (passing > 0) {
          const { discount } = capacityOf(own[endorser]!, passing, used[endorser]!, rules.baseCapacity);
          factors.push(1 - PASSED_ON * discount * passing);
        }
        if (++edges % STEP === 0) yield;
      }
      next[key] = complementOfProduct(factors);
    }
    trust = next;
  }
  const result = new Map<string, number>();
  for (let key = 0; key < fingerprints.length; key++) if (trust[key]! > 0) result.set(fingerprints[key]!, trust[key]!);
  return result;
}

/** The active keys that anchors reach, breadth first. */
function* explore(view: TrustView, anchors: readonly string[]): Steps<Reach> {
  const reach: Reach = { numbers: new Map(), fingerprints: [], hops: [], own: [], used: [], endorsers: [] };
  for (const anchor of anchors) numberOf(view, reach, anchor, 0);
  const { fingerprints, hops, own, used, endorsers } = reach;
  // The list grows while it is walked.
  for (let key = 0; key < fingerprints.length && hops[key]! < ROUNDS; key++) {
    const fingerprint = fingerprints[key]!;
    own[key] = ownTrust(true, yield* view.isAlerted(fingerprint));
    const issued = yield* view.issued(fingerprint);
    used[key] = issued.length;
    for (const [i, endorsed] of issued.entries()) {
      const target = numberOf(view, reach, endorsed, hops[key]! + 1);
      if (target >= 0) endorsers[target]!.push(key);
      if (i % STEP === 0) yield;
    }
  }
  return reach;
}

function numberOf(view: TrustView, reach: Reach, fingerprint: string, hops: number): number {
  const known = reach.numbers.get(fingerprint);
  if (known !== undefined) return known;
  const number = view.isActive(fingerprint) ? reach.fingerprints.length : -1;
  reach.numbers.set(fingerprint, number);
  if (number < 0) return number;
  reach.fingerprints.push(fingerprint);
  reach.hops.push(hops);
  reach.endorsers.push([]);
  return number;
}
