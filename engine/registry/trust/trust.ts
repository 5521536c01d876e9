/**
 * The trust that the service puts in keys: a formula over the endorsement graph, in rounds (`docs/trust.md` explains
 * it). Only *p*, the trust from endorsements, is passed on, and only from anchors. Keys that no anchor reaches give one
 * another nothing, however many they are. A *gate* is a key that an anchor endorses. All trust that comes through one
 * gate counts once, so the holder of a gate gains nothing from keys that endorse one another. `levels.ts` evaluates it.
 */
import type { Steps } from "../../base/turns.js";
import { OWN_TRUST } from "../../verify/keys/contract.js";

/** Maximum number of endorsements on a path from an anchor. Further endorsements pass nothing on. */
export const HOPS = 4;
/** Levels depend on discounts, and discounts depend on levels. Each is computed from the other this many times. */
export const ROUNDS = 4;
/** The part of an endorser's trust that an endorsement passes on. */
export const PASSED_ON = 0.5;
/** Number of endorsements beyond the base capacity that full trust allows a key. */
const CAPACITY_SPAN = 45;
/**
 * Smaller differences are taken for rounding. Without this, a capacity that is a whole number by the formula could come
 * out one too low.
 */
const ROUNDING = 1e-9;
/** The endorsement graph at one moment. */
export interface TrustView {
  /** Microseconds. */
  readonly now: number;
  /** Reads what a key passes trust on with. */
  endorser(fingerprint: string): Steps<Endorser>;
}

/** What decides how much trust a key passes on, and to whom. */
export interface Endorser {
  /** Whether the key exists and is active. */
  readonly isActive: boolean;
  /** Whether an active endorser of the key has filed a live alert about it. */
  readonly isAlerted: boolean;
  /** Whether anybody has filed an alert about it. Such an alert counts while the endorsement does. */
  readonly hasAlerts: boolean;
  /** The endorsed key of every active endorsement that the key has issued, one for each, in any order; none if it is not active. */
  readonly issued: readonly string[];
  /** Other keys whose status was read. */
  readonly others: readonly string[];
  /** Those of the keys that were read that have not named themselves. */
  readonly unnamed: Iterable<string>;
  /** Microseconds: all of this changes with time then; not before, unless by an event. */
  readonly until: number;
}

export interface TrustRules {
  /** Fingerprints. The view knows which of them are active. */
  readonly anchors: readonly string[];
  readonly baseCapacity: number;
}

/** The values of one key. */
interface Capacity {
  /** From 0 to 1. */
  readonly level: number;
  /** Number of active endorsements that it can issue without a discount. */
  readonly capacity: number;
  /** Factor on each of its endorsements; 1 up to the capacity. */
  readonly discount: number;
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
