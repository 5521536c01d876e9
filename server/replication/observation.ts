/**
 * For how long a leader has given no sign. Only changes are looked at, with a clock of this machine that nobody can set: no
 * two clocks are compared.
 */
import type { Lead } from "../../engine/journal/postgres/statements.js";

export class Observation {
  #seen: Pick<Lead, "epoch" | "holder" | "sequence" | "beat"> | null = null;
  #since = performance.now();

  /** Takes what was read just now. A node that stood still reads anew before it judges. */
  see({ epoch, holder, sequence, beat }: Lead): void {
    const seen = this.#seen;
    const isSame = seen?.epoch === epoch && seen.holder === holder && seen.sequence === sequence && seen.beat === beat;
    if (isSame) return;
    this.#seen = { epoch, holder, sequence, beat };
    this.#since = performance.now();
  }

  /** The next look counts as a change. */
  forget(): void {
    this.#seen = null;
    this.#since = performance.now();
  }

  /** Milliseconds since the first of the looks that have all seen the same. */
  get unchangedMs(): number {
    return performance.now() - this.#since;
  }
}
