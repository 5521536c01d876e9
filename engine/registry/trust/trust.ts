/**
 * The trust that the service puts in keys: a formula over the endorsement graph, in rounds (`docs/trust.md` explains
 * it). Only *p*, the trust from endorsements, is passed on, and only from anchors. Keys that no anchor reaches give one
 * another nothing, however many they are. A *gate* is a key that an anchor endorses. All trust that comes through one
 * gate counts once, so the holder of a gate gains nothing from keys that endorse one another.
 */
import type { Steps } from "../slices.js";

/** Maximum number of endorsements on a path from an anchor. Further endorsements pass nothing on. */
const HOPS = 4;
/** Levels depend on discounts, and discounts depend on levels. Each is computed from the other this many times. */
const ROUNDS = 4;
/** The trust of an active key without endorsements. */
const OWN_TRUST = 0.1;
/** The part of an endorser's trust that an endorsement passes on. */
const PASSED_ON = 0.5;
/** Number of endorsements beyond the base capacity that full trust allows a key. */
const CAPACITY_SPAN = 45;
/**
 * Smaller differences are taken for rounding. Without this, a capacity that is a whole number by the formula could come
 * out one too low.
 */
const ROUNDING = 1e-9;
/** Edges between two pauses. */
const STEP = 64;

/** The endorsement graph at one moment. */
export interface TrustView {
  /** Whether the key exists and is active. */
  isActive(fingerprint: string): boolean;
  /** Whether an active endorser of the key has filed a live alert about it. */
  isAlerted(fingerprint: string): Steps<boolean>;
  /** The endorsed key of every active endorsement that the key has issued, one for each endorsement, in any order. */
  issued(fingerprint: string): Steps<readonly string[]>;
}

export interface TrustRules {
  /** Fingerprints. The view knows which of them are active. */
  readonly anchors: readonly string[];
  readonly baseCapacity: number;
}

/** The values of one key. */
export interface Capacity {
  /** From 0 to 1. */
  readonly level: number;
  /** Number of active endorsements that it can issue without a discount. */
  readonly capacity: number;
  /** Factor on each of its endorsements; 1 up to the capacity. */
  readonly discount: number;
}

/** Keys within reach of the anchors. Each has a number. */
interface Reach {
  /** The number of each fingerprint; -1 for a key that is not active, which gets no trust. */
  readonly numbers: Map<string, number>;
  readonly fingerprints: string[];
  /** Hops from the nearest anchor. */
  readonly hops: number[];
  /** *b* of the keys that endorse others. */
  readonly own: number[];
  /** Number of active endorsements issued. */
  readonly used: number[];
  /** The active keys that a key endorses, each once. */
  readonly endorsed: (readonly number[])[];
}

/** A key that anchors endorse. */
interface Gate {
  readonly key: number;
  readonly anchors: number[];
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
  // 1 − (1 − b)·(1 − p), multiplied out, so that it is exactly b for p = 0.
  const level = own + (1 - own) * endorsed;
  const capacity = Math.floor(baseCapacity + CAPACITY_SPAN * level + ROUNDING);
  return { level, capacity, discount: used > capacity ? capacity / used : 1 };
}

/** Whether `value` is at least `limit`, apart from rounding. */
export const reaches = (value: number, limit: number): boolean => value + ROUNDING >= limit;

/** 1 − the product of `factors`. The order of the factors does not change a bit of the result. */
export function complementOfProduct(factors: readonly number[]): number {
  let product = 1;
  for (const factor of Float64Array.from(factors).sort()) product *= factor;
  return 1 - product;
}

/**
 * *p* after the last round, for every key for which it is not 0. The order in which the view gives endorsements does
 * not change a bit of it.
 */
export function* endorsedTrust(view: TrustView, rules: TrustRules): Steps<Map<string, number>> {
  const reach = yield* explore(view, rules.anchors);
  const { fingerprints, hops, own, used, endorsed } = reach;
  const gates = gatesOf(reach);
  let passedOn: Float64Array = new Float64Array(endorsed.length).fill(PASSED_ON);
  let trust: Float64Array = new Float64Array(0);
  for (let round = 0; round < ROUNDS; round++) {
    trust = yield* levels(reach, gates, passedOn);
    const next = passedOn.map((_, key) => {
      return PASSED_ON * capacityOf(own[key]!, trust[key]!, used[key]!, rules.baseCapacity).discount;
    });
    // If no discount changes, the next round would give the same result.
    if (next.every((value, key) => value === passedOn[key])) break;
    passedOn = next;
    yield;
  }
  const result = new Map<string, number>();
  for (let key = 0; key < hops.length; key++) if (trust[key]! > 0) result.set(fingerprints[key]!, trust[key]!);
  return result;
}

/** *p* of every key, at given discounts. @param passedOn ½ · *discount* for each key */
function* levels(reach: Reach, gates: readonly Gate[], passedOn: Float64Array): Steps<Float64Array> {
  const { hops } = reach;
  /** For each key, the product of (1 − *s*) over the gates so far. */
  const rest = Float64Array.from(hops, (hop) => (hop === 0 ? 0 : 1));
  const best = new Float64Array(hops.length);
  const arrived = new Float64Array(hops.length);
  for (const gate of gates) {
    /** Keys for which `best` is not 0. */
    const reached: number[] = [];
    for (const anchor of gate.anchors)
      for (const key of yield* spread(reach, passedOn, anchor, gate.key, arrived)) {
        if (best[key] === 0) reached.push(key);
        if (arrived[key]! > best[key]!) best[key] = arrived[key]!;
        arrived[key] = 0;
      }
    for (const key of reached) {
      rest[key]! *= 1 - best[key]!;
      best[key] = 0;
    }
    yield;
  }
  return rest.map((value) => 1 - value);
}

/**
 * Follows endorsements from an anchor through one of its gates, as far as trust is passed on. A key that is reached
 * again is continued from only if the longer path has a larger product. A path never returns to its anchor.
 * @param arrived receives the largest product of all paths to each key that is reached; all zeros at the call
 * @returns the keys that were reached, each once
 */
function* spread(
  { endorsed }: Reach,
  passedOn: Float64Array,
  anchor: number,
  gate: number,
  arrived: Float64Array,
): Steps<readonly number[]> {
  if (passedOn[anchor] === 0) return [];
  const reached: number[] = [gate];
  arrived[gate] = passedOn[anchor]!;
  let front: readonly number[] = [gate];
  let edges = 0;
  for (let hop = 2; hop <= HOPS && front.length; hop++) {
    // Read before this hop changes them: values that arrive with this hop are passed on with the next.
    const carried = front.map((key) => arrived[key]! * passedOn[key]!);
    const next = new Set<number>();
    for (const [i, key] of front.entries()) {
      const value = carried[i]!;
      if (value === 0) continue;
      for (const target of endorsed[key]!) {
        if (++edges % STEP === 0) yield;
        if (target === anchor || value <= arrived[target]!) continue;
        if (arrived[target] === 0) reached.push(target);
        arrived[target] = value;
        next.add(target);
      }
    }
    front = [...next];
  }
  return reached;
}

/**
 * The keys that anchors endorse, ordered by fingerprint, so that products always have their factors in the same order.
 */
function gatesOf({ fingerprints, hops, endorsed }: Reach): readonly Gate[] {
  const gates = new Map<number, Gate>();
  for (let anchor = 0; hops[anchor] === 0; anchor++)
    for (const key of endorsed[anchor]!) {
      const gate = gates.get(key) ?? { key, anchors: [] };
      gate.anchors.push(anchor);
      gates.set(key, gate);
    }
  return [...gates.values()].sort((a, b) => (fingerprints[a.key]! < fingerprints[b.key]! ? -1 : 1));
}

/** The active keys that anchors reach, breadth first. */
function* explore(view: TrustView, anchors: readonly string[]): Steps<Reach> {
  const reach: Reach = { numbers: new Map(), fingerprints: [], hops: [], own: [], used: [], endorsed: [] };
  for (const anchor of anchors) numberOf(view, reach, anchor, 0);
  const { fingerprints, hops, own, used, endorsed } = reach;
  // The list grows during this loop.
  for (let key = 0; key < fingerprints.length && hops[key]! < HOPS; key++) {
    const fingerprint = fingerprints[key]!;
    own[key] = ownTrust(true, yield* view.isAlerted(fingerprint));
    const issued = yield* view.issued(fingerprint);
    used[key] = issued.length;
    // Endorsements in two categories use the capacity twice, but make only one path.
    const targets = new Set<number>();
    for (const [i, other] of issued.entries()) {
      const target = numberOf(view, reach, other, hops[key]! + 1);
      if (target >= 0) targets.add(target);
      if (i % STEP === 0) yield;
    }
    endorsed[key] = [...targets];
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
  return number;
}
