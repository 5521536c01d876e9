/** So many requests a second, and not more. */
import { setTimeout as sleep } from "node:timers/promises";

export class Pace {
  /** Maximum requests a second. */
  rate = Number.POSITIVE_INFINITY;
  /** Requests so far. */
  requests = 0;
  #next = 0;

  /** Resolves when the next request may be sent. */
  async turn(): Promise<void> {
    const now = performance.now();
    // Requests that could not be sent in time are not sent later, so that the load is steady.
    this.#next = Math.max(now, this.#next + 1000 / this.rate);
    if (this.#next > now) await sleep(this.#next - now);
    this.requests++;
  }
}
