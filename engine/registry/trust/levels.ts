/**
 * *p* of all keys that anchors reach, kept from one evaluation to the next. What was read of a key is read again only if it
 * has changed. What comes through a gate is worked out again only if a key on the way has changed. So an evaluation
 * costs what has changed, and its result is that of an evaluation from nothing, to the last bit.
 *
 * `TrustService` owns it, in the thread that opened the registry. If an evaluation is broken off, it must be thrown away.
 */
import type { Steps } from "../../base/turns.js";
import { capacityOf, HOPS, ownTrust, PASSED_ON, ROUNDS, type TrustRules, type TrustView } from "./trust.js";

/** Edges or keys between two pauses. */
const STEP = 64;
/**
 * Keys on the ways through gates that are kept, for each round; 12 bytes each. Keys within reach can make these ways as long as
 * they like. What comes through the other gates is worked out each time.
 */
const MAX_KEPT = 2_000_000;
/** Number of keys that may come into reach before everything is read again, however few there were. */
const MIN_STALE = 1_000;
/** Why a key's part of an evaluation has changed: whom it endorses, or how much of its trust it passes on. */
const ENDORSES_OTHERS = 1;
const PASSES_OTHERWISE = 2;

/** *p* of every key at one moment. It never changes. */
export interface EndorsedTrust {
  of(fingerprint: string): number;
  /** ½ · *discount*: what each endorsement by the key passes on. */
  passedOn(fingerprint: string): number;
}

/** What is known of a key that passes trust on. */
interface Known {
  readonly isActive: boolean;
  /** *b* */
  readonly own: number;
  /** Number of active endorsements issued. */
  readonly used: number;
  /** The keys that it endorses, each once, in ascending order. */
  readonly endorsed: readonly number[];
  readonly hasAlerts: boolean;
  /** Other keys whose status decides whether an alert counts. */
  readonly others: readonly string[];
  /** Microseconds: it must be read again then. */
  readonly until: number;
}

/** A key that anchors endorse. */
interface GateKey {
  readonly key: number;
  readonly anchors: readonly number[];
}

/** What comes through one gate: each key that is reached, and the product of the best path to it. */
interface Spread {
  readonly anchors: readonly number[];
  readonly keys: Int32Array;
  readonly values: Float64Array;
}

interface Round {
  /** ½ · *discount* of each key; ½ for those behind its end. */
  readonly passedOn: Float64Array;
  /** By the number of the gate. */
  readonly spreads: ReadonlyMap<number, Spread>;
  /** *p* of each key; 0 for those behind its end. */
  readonly trust: Float64Array;
}

export class TrustLevels {
  readonly #rules: TrustRules;
  /** Each key that was ever reached has a number. */
  readonly #numbers = new Map<string, number>();
  readonly #fingerprints: string[] = [];
  /** By number; null for keys of which nothing was read, because they are too far away to pass trust on. */
  readonly #known: (Known | null)[] = [];
  /** For keys whose status decides whether an alert counts, the keys that the alerts are about. */
  readonly #alerted = new Map<string, Set<number>>();
  /** Keys that were read and have not named themselves. A registration may change their name and status. */
  readonly unnamed = new Set<string>();
  #rounds: readonly Round[] = [];
  /** Number of keys after the first evaluation. */
  #atFirst = 0;
  /** All zeros between two gates. */
  readonly #arrived: number[] = [];
  readonly #best: number[] = [];
  /** Microseconds: nothing that was read changes with time before. */
  until = Number.POSITIVE_INFINITY;
  /** Number of keys and endorsements that were read, each once, and since the beginning. */
  kept = 0;
  read = 0;

  constructor(rules: TrustRules) {
    this.#rules = rules;
    for (const anchor of rules.anchors) this.#numberOf(anchor);
  }

  /** Whether the key passes trust on, so that it was read. */
  passesOn(fingerprint: string): boolean {
    return this.#knownOf(fingerprint) !== null;
  }

  /** Whether somebody has filed an alert about a key that passes trust on. */
  hasAlerts(fingerprint: string): boolean {
    return this.#knownOf(fingerprint)?.hasAlerts ?? false;
  }

  /** Keys that pass trust on and are under an alert that counts only while this key is active. */
  *alertedBy(fingerprint: string): Iterable<string> {
    for (const key of this.#alerted.get(fingerprint) ?? []) yield this.#fingerprints[key]!;
  }

  /** Whether keys have come into reach and perhaps gone since the beginning, as many as there were. */
  get isStale(): boolean {
    return this.#numbers.size > 2 * this.#atFirst + MIN_STALE;
  }

  /** @param changed the keys that an event has changed since the last evaluation */
  *evaluate(view: TrustView, changed: Iterable<string>): Steps<EndorsedTrust> {
    const flags = new Uint8Array(this.#known.length);
    let hasChanged = !this.#rounds.length;
    for (const key of this.#toRead(view.now, changed)) {
      const before = this.#known[key];
      const { endorsed, own, used, isActive } = yield* this.#read(view, key);
      const endorsesOthers = !before || !isSame(before.endorsed, endorsed);
      if (endorsesOthers) flags[key] = ENDORSES_OTHERS;
      hasChanged ||= endorsesOthers || own !== before.own || used !== before.used || isActive !== before.isActive;
    }
    if (hasChanged) yield* this.#evaluateRounds(view, flags);
    this.until = this.#known.reduce((until, known) => Math.min(until, known?.until ?? until), Number.POSITIVE_INFINITY);
    const { trust, passedOn } = this.#rounds.at(-1)!;
    const numberOf = (fingerprint: string) => this.#numbers.get(fingerprint) ?? -1;
    return {
      of: (fingerprint) => trust[numberOf(fingerprint)] ?? 0,
      passedOn: (fingerprint) => passedOn[numberOf(fingerprint)] ?? PASSED_ON,
    };
  }

  /** @param flags of each key, whether it endorses others than before */
  *#evaluateRounds(view: TrustView, flags: Uint8Array): Steps<void> {
    const gates = this.#gates();
    const rounds: Round[] = [];
    while (rounds.length < ROUNDS) {
      const last = rounds.at(-1);
      const passedOn = last ? yield* this.#passedOn(last.trust) : new Float64Array(0);
      // If no discount changes, this round would give the same result.
      if (last && !differences(passedOn, last.passedOn).length) break;
      // A round that there was not before begins where the round before it has just ended.
      const old = this.#rounds[rounds.length];
      const own = old ? flags.slice() : new Uint8Array(passedOn.length);
      for (const key of differences(passedOn, (old ?? last)?.passedOn ?? passedOn))
        if (key < own.length) own[key]! |= PASSES_OTHERWISE;
      rounds.push(yield* this.#round(view, gates, passedOn, old ?? last, own));
    }
    if (!this.#rounds.length) this.#atFirst = this.#numbers.size;
    this.#rounds = rounds;
  }

  #knownOf(fingerprint: string): Known | null {
    return this.#known[this.#numbers.get(fingerprint) ?? -1] ?? null;
  }

  #numberOf(fingerprint: string): number {
    const known = this.#numbers.get(fingerprint);
    if (known !== undefined) return known;
    const number = this.#fingerprints.push(fingerprint) - 1;
    this.#numbers.set(fingerprint, number);
    this.#known.push(null);
    this.#arrived.push(0);
    this.#best.push(0);
    return number;
  }

  #toRead(now: number, changed: Iterable<string>): ReadonlySet<number> {
    const keys = new Set<number>();
    for (const fingerprint of this.#rules.anchors)
      if (!this.passesOn(fingerprint)) keys.add(this.#numberOf(fingerprint));
    for (const fingerprint of changed) if (this.passesOn(fingerprint)) keys.add(this.#numberOf(fingerprint));
    if (this.until <= now)
      for (const [key, known] of this.#known.entries()) if (known && known.until <= now) keys.add(key);
    return keys;
  }

  *#read(view: TrustView, key: number): Steps<Known> {
    const fingerprint = this.#fingerprints[key]!;
    const { isActive, isAlerted, issued, unnamed, ...rest } = yield* view.endorser(fingerprint);
    const before = this.#known[key];
    for (const other of before?.others ?? []) this.#alerted.get(other)!.delete(key);
    for (const other of rest.others) {
      const alerted = this.#alerted.get(other) ?? new Set();
      this.#alerted.set(other, alerted.add(key));
    }
    this.unnamed.delete(fingerprint);
    for (const one of unnamed) this.unnamed.add(one);
    const targets = new Set<number>();
    for (const [i, other] of issued.entries()) {
      targets.add(this.#numberOf(other));
      if (i % STEP === 0) yield;
    }
    // Endorsements in two categories use the capacity twice, but make only one path.
    const endorsed = [...targets].sort((a, b) => a - b);
    const known = { isActive, own: ownTrust(isActive, isAlerted), used: issued.length, endorsed, ...rest };
    this.#known[key] = known;
    this.kept += known.used - (before ? before.used : -1);
    this.read += 1 + known.used;
    return known;
  }

  /** The keys that anchors endorse, ordered by fingerprint, so that products always have their factors in the same order. */
  #gates(): readonly GateKey[] {
    const gates = new Map<number, number[]>();
    for (const fingerprint of new Set(this.#rules.anchors)) {
      const anchor = this.#numberOf(fingerprint);
      for (const key of this.#known[anchor]!.endorsed) {
        const anchors = gates.get(key) ?? [];
        anchors.push(anchor);
        gates.set(key, anchors);
      }
    }
    const name = ({ key }: GateKey) => this.#fingerprints[key]!;
    return [...gates].map(([key, anchors]) => ({ key, anchors })).sort((a, b) => (name(a) < name(b) ? -1 : 1));
  }

  /** ½ · *discount* of each key. @param trust its *p* in the round before */
  *#passedOn(trust: Float64Array): Steps<Float64Array> {
    const { baseCapacity } = this.#rules;
    const passedOn = new Float64Array(this.#known.length).fill(PASSED_ON);
    for (const [key, known] of this.#known.entries()) {
      if (key % 1024 === 0) yield;
      if (!known || known.used <= baseCapacity) continue;
      passedOn[key]! *= capacityOf(known.own, trust[key] ?? 0, known.used, baseCapacity).discount;
    }
    return passedOn;
  }

  /**
   * *p* of every key, at given discounts.
   * @param old a round at other discounts; what came through a gate in it holds unless a key on the way has changed
   * @param changed of each key, what has changed since
   */
  *#round(
    view: TrustView,
    gates: readonly GateKey[],
    passedOn: Float64Array,
    old: Round | undefined,
    changed: Uint8Array,
  ): Steps<Round> {
    const holds = ({ anchors }: GateKey, spread: Spread) =>
      isSame(anchors, spread.anchors) &&
      !anchors.some((anchor) => changed[anchor]! & PASSES_OTHERWISE) &&
      !spread.keys.some((key) => changed[key]);
    const spreads = new Map<number, Spread>();
    let size = 0;
    /** For each key, the product of (1 − *s*) over the gates so far. */
    let rest = new Float64Array(this.#known.length).fill(1);
    for (const gate of gates) {
      const before = old?.spreads.get(gate.key);
      const spread = before && holds(gate, before) ? before : yield* this.#through(view, gate, passedOn);
      size += spread.keys.length;
      if (size <= MAX_KEPT) spreads.set(gate.key, spread);
      if (rest.length < this.#known.length) rest = grown(rest, this.#known.length);
      const { keys, values } = spread;
      for (let i = 0; i < keys.length; i++) rest[keys[i]!]! *= 1 - values[i]!;
      yield;
    }
    const trust = rest.map((value) => 1 - value);
    for (const fingerprint of this.#rules.anchors) trust[this.#numberOf(fingerprint)] = 1;
    for (const [key, known] of this.#known.entries()) if (known && !known.isActive) trust[key] = 0;
    return { passedOn, spreads, trust };
  }

  /** The best path to each key through one gate, from any of its anchors. */
  *#through(view: TrustView, { key: gate, anchors }: GateKey, passedOn: Float64Array): Steps<Spread> {
    const [arrived, best] = [this.#arrived, this.#best];
    /** Keys for which `best` is not 0. */
    const reached: number[] = [];
    for (const anchor of anchors)
      for (const key of yield* this.#spread(view, passedOn, anchor, gate)) {
        if (best[key] === 0) reached.push(key);
        if (arrived[key]! > best[key]!) best[key] = arrived[key]!;
        arrived[key] = 0;
      }
    const keys = Int32Array.from(reached);
    const values = Float64Array.from(reached, (key) => best[key]!);
    for (const key of reached) best[key] = 0;
    return { anchors, keys, values };
  }

  /**
   * Follows endorsements from an anchor through one of its gates, as far as trust is passed on. A key that is reached
   * again is continued from only if the longer path has a larger product. A path never returns to its anchor. A key that is
   * not active is reached, too, but has endorsed nobody.
   * @returns the keys that were reached, each once; `#arrived` has the largest product of all paths to each
   */
  *#spread(view: TrustView, passedOn: Float64Array, anchor: number, gate: number): Steps<readonly number[]> {
    const arrived = this.#arrived;
    const passed = (key: number) => passedOn[key] ?? PASSED_ON;
    if (passed(anchor) === 0) return [];
    const reached: number[] = [gate];
    arrived[gate] = passed(anchor);
    let front: readonly number[] = [gate];
    let edges = 0;
    for (let hop = 2; hop <= HOPS && front.length; hop++) {
      // Read before this hop changes them: values that arrive with this hop are passed on with the next.
      const carried = front.map((key) => arrived[key]! * passed(key));
      const next = new Set<number>();
      for (const [i, key] of front.entries()) {
        const value = carried[i]!;
        if (value === 0) continue;
        const { endorsed } = this.#known[key] ?? (yield* this.#read(view, key));
        for (const target of endorsed) {
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
}

const isSame = (one: readonly number[], other: readonly number[]): boolean =>
  one.length === other.length && one.every((value, i) => value === other[i]);

/** Keys that two rounds pass on different parts of their trust for. */
function differences(one: Float64Array, other: Float64Array): readonly number[] {
  const keys: number[] = [];
  for (let key = 0; key < Math.max(one.length, other.length); key++)
    if ((one[key] ?? PASSED_ON) !== (other[key] ?? PASSED_ON)) keys.push(key);
  return keys;
}

/** The same factors, and 1 for the keys behind them. */
function grown(rest: Float64Array, length: number): Float64Array<ArrayBuffer> {
  const longer = new Float64Array(2 * length).fill(1);
  longer.set(rest);
  return longer;
}
