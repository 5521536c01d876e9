/**
 * Trust levels as the service answers them. What anchors give (*p*) is evaluated as a whole and kept until an event names
 * a key that mattered for it, or an endorsement or key in it changes with time; what a single key adds is read on demand.
 * Events among keys that no anchor reaches never cause an evaluation.
 */
import type { Clock } from "../../log/clock.js";
import { isTouchedSince } from "../graph/events.js";
import { type GraphParts, type GraphView, viewing } from "../graph/view.js";
import type { Slices, Steps } from "../slices.js";
import { capacityOf, endorsedTrust, ownTrust, reaches } from "./trust.js";

export interface TrustSettings {
  /** Fingerprints of anchors beside the operator key. */
  readonly anchors: readonly string[];
  /** `SERVICE_ENDORSEMENT_BASE_CAPACITY` */
  readonly baseCapacity: number;
  /** `SERVICE_ENDORSEMENT_MIN_TRUST` */
  readonly minTrust: number;
}

export const DEFAULT_TRUST_SETTINGS: TrustSettings = { anchors: [], baseCapacity: 5, minTrust: 0.1 };

/** How the service trusts a key, as `GET /endorsements/{fingerprint}/status` tells it. */
export interface TrustStanding {
  readonly trust_level: number;
  readonly capacity: number;
  /** Active endorsements issued. */
  readonly capacity_used: number;
  readonly over_capacity: boolean;
  /** Factor on each endorsement that it has issued. */
  readonly discount: number;
  readonly may_endorse: boolean;
}

/** Judges one key in a view of the graph. */
export type Judge = (view: GraphView, fingerprint: string) => Steps<TrustStanding>;

interface Evaluation {
  /** *p* of every key for which it is not 0. */
  readonly trust: ReadonlyMap<string, number>;
  /** Keys that mattered: an event that names one of them ends it. */
  readonly asked: ReadonlySet<string>;
  /** Anchors that were keys then; one that is registered later is new. */
  readonly anchorsFound: number;
  /** Microseconds between which it holds. */
  readonly from: number;
  readonly until: number;
  /** Size of the log up to which no event has ended it. */
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
  /** The evaluation under way, and the one that will follow it for those who asked meanwhile. */
  #running: Promise<Evaluation> | null = null;
  #next: Promise<Evaluation> | null = null;
  /** Evaluations made since the start. */
  evaluations = 0;

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly graph: GraphParts;
    /** For evaluations and standings, on which endorsing depends. */
    readonly slices: Slices;
    /** For queries, as large as whoever asks makes them: they must not keep the others from beginning. */
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
   * How the service trusts the key, from a graph no older than the call. A fingerprint of no key has level 0.
   * @throws CairnlogError `overloaded`, `closed`
   */
  async standing(fingerprint: string): Promise<TrustStanding> {
    return (await this.standings([fingerprint])).get(fingerprint)!;
  }

  /** `standing` of several keys, from one graph. @throws CairnlogError `overloaded`, `closed` */
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

  /** `trust_level` of `standing`. @throws CairnlogError `overloaded`, `closed` */
  async level(fingerprint: string): Promise<number> {
    return (await this.standing(fingerprint)).trust_level;
  }

  /** `capacity` of `standing`. @throws CairnlogError `overloaded`, `closed` */
  async capacity(fingerprint: string): Promise<number> {
    return (await this.standing(fingerprint)).capacity;
  }

  /** `capacity_used` of `standing`. @throws CairnlogError `overloaded`, `closed` */
  async capacityUsed(fingerprint: string): Promise<number> {
    return (await this.standing(fingerprint)).capacity_used;
  }

  /** `discount` of `standing`. @throws CairnlogError `overloaded`, `closed` */
  async discount(fingerprint: string): Promise<number> {
    return (await this.standing(fingerprint)).discount;
  }

  /** Whether the key is active and trusted enough to endorse. @throws CairnlogError `overloaded`, `closed` */
  async mayEndorse(fingerprint: string): Promise<boolean> {
    return (await this.standing(fingerprint)).may_endorse;
  }

  /**
   * Runs `work` in slices over the graph, with a function that judges keys in it.
   * @throws CairnlogError `overloaded`, `closed`; and whatever `work` throws
   */
  query<T>(work: (view: GraphView, judge: Judge) => Steps<T>): Promise<T> {
    return this.#ask(this.#querySlices, work);
  }

  async #ask<T>(slices: Slices, work: (view: GraphView, judge: Judge) => Steps<T>): Promise<T> {
    const { trust } = await this.#current();
    const judge: Judge = (view, fingerprint) => this.#judge(view, trust, fingerprint);
    return slices.run(viewing(this.#parts, this.#clock, (view) => work(view, judge)));
  }

  *#judge(view: GraphView, trust: ReadonlyMap<string, number>, fingerprint: string): Steps<TrustStanding> {
    const { baseCapacity, minTrust } = this.#settings;
    const isActive = view.isActive(fingerprint);
    const own = ownTrust(isActive, isActive && (yield* view.isAlerted(fingerprint)));
    const endorsed = isActive ? (trust.get(fingerprint) ?? 0) : 0;
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
    if (this.#kept && this.#holds(this.#kept)) return Promise.resolve(this.#kept);
    if (!this.#running) {
      this.#running = this.#evaluate().finally(() => {
        this.#running = null;
      });
      return this.#running;
    }
    // What runs was begun before this call and may have read an older graph. All who came since share the next one.
    this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#next = null;
        return this.#current();
      });
    return this.#next;
  }

  async #evaluate(): Promise<Evaluation> {
    const rules = { anchors: this.#anchors, baseCapacity: this.#settings.baseCapacity };
    // Counted before the snapshot is taken: an entry that comes in between is looked at once more, never overlooked.
    const { size } = this.#parts.log;
    const anchorsFound = this.#anchorsFound();
    const evaluate = function* (view: GraphView): Steps<Evaluation> {
      const trust = yield* endorsedTrust(view, rules);
      return { trust, asked: view.asked, anchorsFound, from: view.now, until: view.holdsUntil, size };
    };
    this.#kept = await this.#slices.run(viewing(this.#parts, this.#clock, evaluate));
    this.evaluations++;
    return this.#kept;
  }

  /** Whether nothing has happened since that could make it another. */
  #holds(evaluation: Evaluation): boolean {
    const now = this.#clock();
    const { log } = this.#parts;
    if (now < evaluation.from || now >= evaluation.until) return false;
    if (evaluation.anchorsFound !== this.#anchorsFound()) return false;
    if (isTouchedSince(log, evaluation.size, evaluation.asked)) return false;
    evaluation.size = log.size;
    return true;
  }

  #anchorsFound(): number {
    return this.#anchors.filter((fingerprint) => this.#parts.log.row("keys", fingerprint)).length;
  }
}
