/**
 * How often a secret may be tried: so many wrong tries in any window of time, for each name it is tried under. A try
 * counts from its beginning, so that a thousand at one moment are not a thousand tries for the price of one.
 */
import { CairnlogError } from "../../error.js";
import type { Clock } from "../../log/clock.js";

/**
 * Names remembered; beyond it the one not tried for longest is forgotten, which only ever forgives. 32 MB when full of
 * fingerprints.
 */
export const MAX_NAMES = 100_000;
const MICROS = 1_000_000;

export interface TriesOptions {
  /** Wrong tries in one window. */
  readonly limit: number;
  readonly windowSeconds: number;
  readonly clock: Clock;
  /** What there were too many of, for the refusal; wrong tries when absent. */
  readonly about?: string;
}

export class Tries {
  readonly #limit: number;
  readonly #window: number;
  readonly #clock: Clock;
  readonly #about: string;
  /**
   * Times of the tries of each name, oldest first; at most `limit`. The name tried last is the last one. Attackers choose
   * among the names.
   */
  readonly #times = new Map<string, number[]>();

  constructor({ limit, windowSeconds, clock, about = "wrong tries" }: TriesOptions) {
    this.#limit = limit;
    this.#window = windowSeconds * MICROS;
    this.#clock = clock;
    this.#about = about;
  }

  /** Names remembered at the moment. */
  get size(): number {
    return this.#times.size;
  }

  /**
   * Counts a try. Give it back when it turns out to be right.
   * @returns gives the try back
   * @throws CairnlogError `rate-limited`, with the seconds until the next try
   */
  take(name: string): () => void {
    const now = this.#clock();
    // Times to come are of a clock that has stepped back since: they would lock the name for as long as it was ahead.
    const times = (this.#times.get(name) ?? []).filter((time) => time > now - this.#window && time <= now);
    if (times.length >= this.#limit) {
      const retryAfter = Math.ceil((times[0]! + this.#window - now) / MICROS);
      throw new CairnlogError("rate-limited", `Too many ${this.#about}. Try again in ${retryAfter} seconds.`, {
        retryAfter,
      });
    }
    times.push(now);
    this.#remember(name, times, now);
    return () => this.#giveBack(name, now);
  }

  #giveBack(name: string, time: number): void {
    const times = this.#times.get(name) ?? [];
    const at = times.indexOf(time);
    if (at >= 0) times.splice(at, 1);
    if (!times.length) this.#times.delete(name);
  }

  #remember(name: string, times: number[], now: number): void {
    this.#times.delete(name);
    this.#times.set(name, times);
    for (const [oldest, tried] of this.#times) {
      if (tried.at(-1)! > now - this.#window && this.#times.size <= MAX_NAMES) return;
      this.#times.delete(oldest);
    }
  }
}
