/**
 * Limits wrong tries for a secret: a maximum in any time window, for each name. A try counts from its start, so a
 * thousand simultaneous tries count as a thousand.
 */
import { CairnlogError } from "../../base/error.js";
import type { Clock } from "../../log/state/clock.js";

/**
 * Maximum number of names that are remembered. Beyond it, the name that was tried longest ago is forgotten, which can
 * only allow more tries. The names take 32 MB when all of them are fingerprints.
 */
const MAX_NAMES = 100_000;
const MICROS = 1_000_000;

interface TriesOptions {
  /** Wrong tries in one window. */
  readonly limit: number;
  readonly windowSeconds: number;
  readonly clock: Clock;
  /** Names the counted thing in the error text. "wrong tries", if absent. */
  readonly about?: string;
}

export class Tries {
  readonly #limit: number;
  readonly #window: number;
  readonly #clock: Clock;
  readonly #about: string;
  /**
   * Times of the tries of each name, oldest first; at most `limit`. Names are ordered by their last try, newest last.
   * Attackers choose the names.
   */
  readonly #times = new Map<string, number[]>();

  constructor({ limit, windowSeconds, clock, about = "wrong tries" }: TriesOptions) {
    this.#limit = limit;
    this.#window = windowSeconds * MICROS;
    this.#clock = clock;
    this.#about = about;
  }

  /** Number of names that are remembered. */
  get size(): number {
    return this.#times.size;
  }

  /**
   * Counts a try. Give the try back if the secret turns out to be right.
   * @returns a function that gives the try back
   * @throws CairnlogError `rate-limited`, with the seconds until the next try
   */
  take(name: string): () => void {
    const now = this.#clock();
    // Future times come from before the clock was set back. They would lock the name until the clock has caught up.
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
