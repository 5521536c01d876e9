/** Whether this node leads, for every thread of it: words of shared memory. */
import { CairnlogError } from "../../engine/base/error.js";
import type { Lead } from "../../engine/journal/postgres/statements.js";

const LEADS = 0;
const STALE = 1;
const CONFIRMATIONS = 2;

const NOT_LEADING = new CairnlogError("not-leader", "Another node writes this log now.", { retryAfter: 1 });

/** What front ends see. */
export interface RoleReader {
  /** The words that all threads share. */
  readonly buffer: SharedArrayBuffer;
  readonly leads: boolean;
  /** Whether it has had no news of the log for too long. */
  readonly isStale: boolean;
  /** How often the journal has confirmed that this node leads; it may begin again at a negative number. */
  readonly confirmations: number;
}

/** The role in the memory that the writer's thread has made. */
export function roleIn(buffer: SharedArrayBuffer): RoleReader {
  const words = new Int32Array(buffer);
  return {
    buffer,
    get leads() {
      return Atomics.load(words, LEADS) === 1;
    },
    get isStale() {
      return Atomics.load(words, STALE) === 1;
    },
    get confirmations() {
      return Atomics.load(words, CONFIRMATIONS);
    },
  };
}

/** Belongs to the writer's thread. A node begins as a follower that knows nothing. */
export class Role implements RoleReader {
  readonly buffer = new SharedArrayBuffer(12);
  readonly #words = new Int32Array(this.buffer);
  readonly #reader = roleIn(this.buffer);

  constructor() {
    this.isStale = true;
  }

  get leads(): boolean {
    return this.#reader.leads;
  }

  /** Why nothing may be appended now; null if it may. */
  refusal: CairnlogError | null = NOT_LEADING;

  lead(): void {
    this.refusal = null;
    Atomics.store(this.#words, LEADS, 1);
  }

  /** Front ends refuse writes from now on; what they accepted before may still be appended. */
  retire(): void {
    Atomics.store(this.#words, LEADS, 0);
  }

  follow(): void {
    this.refusal = NOT_LEADING;
    this.retire();
  }

  get confirmations(): number {
    return this.#reader.confirmations;
  }

  /** The journal has said that this node leads. */
  confirm(): void {
    Atomics.add(this.#words, CONFIRMATIONS, 1);
  }

  get isStale(): boolean {
    return this.#reader.isStale;
  }

  set isStale(isStale: boolean) {
    Atomics.store(this.#words, STALE, isStale ? 1 : 0);
  }
}

// For how long a leader has given no sign. Only changes are looked at, with a clock of this machine that nobody can set: no
// two clocks are compared.

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

  /** Milliseconds since the first of the looks that have all seen the same. */
  get unchangedMs(): number {
    return performance.now() - this.#since;
  }
}
