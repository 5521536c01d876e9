/**
 * The trust that the service puts in keys: a formula over the endorsement graph, in rounds (`docs/trust.md` explains it
 * to a person). Only *p*, what endorsements bring, travels along them, and only from anchors: keys that no anchor
 * reaches give one another nothing, however many they are. And whatever comes through one *gate*, a key that an anchor
 * endorses, counts once: so a gate's holder gains nothing by making keys that endorse one another.
 */
import type { Steps } from "../slices.js";

/** Endorsements on a path from an anchor; a further one carries nothing. */
const HOPS = 4;
/** Levels depend on discounts and these on levels: so many times each is worked out from the other. */
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
 * *p* after the last round, of every key for which it is not 0. A function of the graph: the order in which the view gives
 * endorsements does not change a bit of it.
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
    // While nobody's discount changes, the next round would find the same again.
    if (next.every((value, key) => value === passedOn[key])) break;
    passedOn = next;
    yield;
  }
  const result = new Map<string, number>();
  for (let key = 0; key < hops.length; key++) if (trust[key]! > 0) result.set(fingerprints[key]!, trust[key]!);
  return result;
}

/** *p* of every key, at given discounts. @param passedOn ½ · *discount* of the keys that endorse others */
function* levels(reach: Reach, gates: readonly Gate[], passedOn: Float64Array): Steps<Float64Array> {
  const { hops } = reach;
  /** The product of (1 − *s*) over the gates so far. */
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
 * Goes from an anchor through one of its gates, as far as trust travels. A key that is reached again is gone on from only
 * where the longer way brought more. The anchor itself is no part of a way that begins there.
 * @param arrived gets, for each key that is reached, the largest product of all ways to it; zeros before
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
    // Taken before this hop changes them: what comes with this hop goes on with the next.
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

/** The keys that anchors endorse, in the order of their fingerprints: products of the same factors are then the same. */
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
  // The list grows while it is walked.
  for (let key = 0; key < fingerprints.length && hops[key]! < HOPS; key++) {
    const fingerprint = fingerprints[key]!;
    own[key] = ownTrust(true, yield* view.isAlerted(fingerprint));
    const issued = yield* view.issued(fingerprint);
    used[key] = issued.length;
    // An endorsement in each of two categories uses up capacity twice, and is one way.
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
