/**
 * Trust levels as the service answers them. The trust from anchors (*p*) is kept for all keys at once (`levels.ts`), until an
 * event changes a key that it depends on, or something in it changes with time. Then what has changed is evaluated again.
 * The rest of a key's level is computed on request. Events between keys that no anchor reaches never cause an evaluation.
 */
import type { Steps } from "../../base/turns.js";
import type { Clock } from "../../log/state/clock.js";
import type { Slices } from "../shared/slices.js";
import { type EndorsedTrust, TrustLevels } from "./levels.js";
import { type GatePath, pathsTo } from "./paths.js";
import { capacityOf, ownTrust, reaches } from "./trust.js";
import { changedKeys, eventsSince, type GraphParts, type GraphView, viewing } from "./view.js";

export interface TrustSettings {
  /** Fingerprints of anchors besides the operator key. */
  readonly anchors: readonly string[];
  /** `SERVICE_ENDORSEMENT_BASE_CAPACITY` */
  readonly baseCapacity: number;
  /** `SERVICE_ENDORSEMENT_MIN_TRUST` */
  readonly minTrust: number;
}

export const DEFAULT_TRUST_SETTINGS: TrustSettings = { anchors: [], baseCapacity: 5, minTrust: 0.1 };

/** Pauses of the look at new events that a call makes at once, before it is work for slices. */
const LOOKS = 16;
/** Number of events that are looked at, however little there is to read instead. */
const MIN_EVENTS = 1_000;
/** Milliseconds for which `isReached` does not look whether its evaluation holds. */
const REFRESH_MS = 5_000;

/** The service's trust in a key, as `GET /endorsements/{fingerprint}/status` serves it. */
interface TrustStanding {
  readonly trust_level: number;
  /** Number of active endorsements that it can issue without a discount. */
  readonly capacity: number;
  /** Number of active endorsements that it has issued. */
  readonly capacity_used: number;
  readonly over_capacity: boolean;
  /** Factor on each of the endorsements that it has issued. */
  readonly discount: number;
  /** Whether it is active and has enough trust. */
  readonly may_endorse: boolean;
}

/** Judges one key in a view of the graph. */
export type TrustJudge = (view: GraphView, fingerprint: string) => Steps<TrustStanding>;

interface Evaluation {
  readonly trust: EndorsedTrust;
  /** Number of anchors that were keys at the time. An anchor that is registered later makes the evaluation invalid. */
  readonly anchorsFound: number;
  /** The interval in which it is valid, microseconds. */
  readonly from: number;
  readonly until: number;
  /** Size of the log up to which no event has made it invalid. */
  size: number;
}

export class TrustService {
  readonly #parts: GraphParts;
  readonly #slices: Slices;
  readonly #querySlices: Slices;
  readonly #clock: Clock;
  readonly #settings: TrustSettings;
  readonly #anchors: readonly string[];
  #kept: Evaluation | null = null;
  /** What `#kept` was made from. Null before the first evaluation, during each, and after one that failed. */
  #levels: TrustLevels | null = null;
  /** The running evaluation, and the one that follows it for callers that came meanwhile. */
  #running: Promise<Evaluation> | null = null;
  #next: Promise<Evaluation> | null = null;
  #refreshAt = Number.NEGATIVE_INFINITY;
  /** Number of evaluations since the start. */
  evaluations = 0;
  /** Number of keys and endorsements that these have read. */
  read = 0;

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly graph: GraphParts;
    /** Runs evaluations and standings. Endorsing depends on them. */
    readonly slices: Slices;
    /** Runs other queries. Clients decide how large these are, so they must not delay the others. */
    readonly querySlices: Slices;
    readonly clock: Clock;
    readonly settings: TrustSettings;
  }) {
    this.#parts = parts.graph;
    this.#slices = parts.slices;
    this.#querySlices = parts.querySlices;
    this.#clock = parts.clock;
    this.#settings = parts.settings;
    this.#anchors = [...new Set([parts.graph.operator, ...parts.settings.anchors])];
  }

  /**
   * The service's trust in the key, from a graph no older than the call. A fingerprint without a key has level 0.
   * @throws CairnlogError `overloaded`, `closed`
   */
  async standing(fingerprint: string): Promise<TrustStanding> {
    return (await this.standings([fingerprint])).get(fingerprint)!;
  }

  /** The standings of several keys, from one graph. @throws CairnlogError `overloaded`, `closed` */
  standings(fingerprints: Iterable<string>): Promise<Map<string, TrustStanding>> {
    return this.#ask(this.#slices, function* (view, judge) {
      const standings = new Map<string, TrustStanding>();
      for (const fingerprint of new Set(fingerprints)) {
        standings.set(fingerprint, yield* judge(view, fingerprint));
        yield;
      }
      return standings;
    });
  }

  /** The key's trust level, 0 to 1. @throws CairnlogError `overloaded`, `closed` */
  async level(fingerprint: string): Promise<number> {
    return (await this.standing(fingerprint)).trust_level;
  }

  /**
   * The best paths from anchors to the key, at most five: what its level is made of.
   * @throws CairnlogError `overloaded`, `closed`
   */
  async paths(fingerprint: string): Promise<readonly GatePath[]> {
    const { trust } = await this.#current();
    const anchors = new Set(this.#anchors);
    return this.#querySlices.run(
      viewing(this.#parts, this.#clock, (view) => pathsTo(view, trust, anchors, fingerprint)),
    );
  }

  /**
   * Whether an anchor reaches the key, as far as it is known without a look at the graph: cheap enough for each attestation.
   * The answer may be some seconds old; before the first evaluation it is false for all keys but the operator's.
   */
  isReached(fingerprint: string): boolean {
    this.#refresh();
    return fingerprint === this.#parts.operator || (this.#kept?.trust.of(fingerprint) ?? 0) > 0;
  }

  /** Whether an anchor reaches the key, in a graph no older than the call. @throws CairnlogError `overloaded`, `closed` */
  async reaches(fingerprint: string): Promise<boolean> {
    const { trust } = await this.#current();
    return fingerprint === this.#parts.operator || trust.of(fingerprint) > 0;
  }

  /** Looks whether the evaluation holds, and makes another one if not; at most once in some seconds. */
  #refresh(): void {
    const now = performance.now();
    if (now < this.#refreshAt) return;
    this.#refreshAt = now + REFRESH_MS;
    // Who is refused because of an old answer asks again, and learns why the graph cannot be read. `#current` may throw, too.
    (async () => this.#current())().catch(() => undefined);
  }

  /**
   * Runs `work` in slices over the graph, with a function that judges keys in it.
   * @throws CairnlogError `overloaded`, `closed`; and whatever `work` throws
   */
  query<T>(work: (view: GraphView, judge: TrustJudge) => Steps<T>): Promise<T> {
    return this.#ask(this.#querySlices, work);
  }

  async #ask<T>(slices: Slices, work: (view: GraphView, judge: TrustJudge) => Steps<T>): Promise<T> {
    const { trust } = await this.#current();
    const judge: TrustJudge = (view, fingerprint) => this.#judge(view, trust, fingerprint);
    return slices.run(viewing(this.#parts, this.#clock, (view) => work(view, judge)));
  }

  *#judge(view: GraphView, trust: EndorsedTrust, fingerprint: string): Steps<TrustStanding> {
    const { baseCapacity, minTrust } = this.#settings;
    const isActive = view.isActive(fingerprint);
    const own = ownTrust(isActive, isActive && (yield* view.isAlerted(fingerprint)));
    const endorsed = isActive ? trust.of(fingerprint) : 0;
    const { length: used } = yield* view.issued(fingerprint);
    const { level, capacity, discount } = capacityOf(own, endorsed, used, baseCapacity);
    return {
      trust_level: level,
      capacity,
      capacity_used: used,
      over_capacity: used > capacity,
      discount,
      may_endorse: isActive && reaches(level, minTrust),
    };
  }

  /** An evaluation of a graph no older than the call. */
  #current(): Promise<Evaluation> {
    if (!this.#running) {
      if (this.#kept && this.#holds(this.#kept)) return Promise.resolve(this.#kept);
      this.#running = this.#evaluate().finally(() => {
        this.#running = null;
      });
      return this.#running;
    }
    // The running evaluation began before this call, so it may have read an older graph. All callers since then share
    // the next one.
    this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#next = null;
        return this.#current();
      });
    return this.#next;
  }

  async #evaluate(): Promise<Evaluation> {
    // Read before the snapshot is taken. An entry that comes in between is then checked once more, and never missed.
    const { log } = this.#parts;
    const { size } = log;
    const anchorsFound = this.#anchorsFound();
    const kept = this.#kept;
    const known = this.#levels;
    // Evaluations change it step by step. If one is broken off, the next begins from nothing.
    this.#levels = null;
    const anchors = this.#anchors;
    const rules = { anchors, baseCapacity: this.#settings.baseCapacity };
    const evaluate = function* (view: GraphView) {
      const follows =
        known &&
        kept &&
        !known.isStale &&
        view.now >= kept.from &&
        eventsSince(log, kept.size) <= known.kept + MIN_EVENTS;
      const levels = follows ? known : new TrustLevels(rules);
      const changed = new Set(follows ? yield* changedKeys(log, kept.size, levels) : []);
      if (anchorsFound !== kept?.anchorsFound) for (const anchor of anchors) changed.add(anchor);
      const before = levels.read;
      const trust = yield* levels.evaluate(view, changed);
      const evaluation = { trust, anchorsFound, from: view.now, until: levels.until, size };
      return { levels, evaluation, read: levels.read - before };
    };
    const { levels, evaluation, read } = await this.#slices.run(viewing(this.#parts, this.#clock, evaluate));
    this.evaluations++;
    this.read += read;
    this.#levels = levels;
    this.#kept = evaluation;
    return evaluation;
  }

  /** Whether the evaluation is still valid, as far as a short look shows. */
  #holds(evaluation: Evaluation): boolean {
    const now = this.#clock();
    const { log } = this.#parts;
    if (!this.#levels || now < evaluation.from || now >= evaluation.until) return false;
    if (evaluation.anchorsFound !== this.#anchorsFound()) return false;
    const { size } = log;
    const look = changedKeys(log, evaluation.size, this.#levels);
    for (let looks = 0; looks < LOOKS; looks++) {
      const { done, value } = look.next();
      if (!done) continue;
      if (value.size) return false;
      evaluation.size = size;
      return true;
    }
    return false;
  }

  #anchorsFound(): number {
    return this.#anchors.filter((fingerprint) => this.#parts.log.row("keys", fingerprint)).length;
  }
}
