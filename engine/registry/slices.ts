/**
 * Long queries in slices. Appends are formed on the same thread, so a query that could take seconds is a generator that
 * pauses often, and all such queries together get one short slice of each turn of the event loop.
 */
import { CairnlogError } from "../error.js";
import type { Log } from "../log/log.js";

/** Work that pauses at every `yield`; what lies between two pauses should take well below a millisecond. */
export type Steps<T> = Generator<void, T, void>;

/**
 * Milliseconds of a turn of the event loop that queries may take, however many there are. A batch of appends takes a
 * handful of turns, so this is what it waits for each time; an idle loop turns so fast that short slices cost nothing.
 */
const SLICE_MS = 0.5;
/** Pause after a slice while appends are being made, so that they get most of the thread. */
const PAUSE_MS = 1;
/** How long after a batch was written appends are taken to go on: batches of a busy log follow one another faster. */
const BUSY_MS = 50;
/** Queries that may wait to begin; anybody may ask. */
const MAX_WAITING = 256;
/** Queries that are under way at one time: each may hold a snapshot, of which LMDB has a bounded number. */
const MAX_STARTED = 16;

interface Job {
  readonly steps: Steps<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Runs queries side by side, a slice each in turn. */
export class Slices {
  readonly #log: Pick<Log, "queued" | "batches">;
  /** Those under way, the next to get a slice first, and those not yet begun. */
  readonly #jobs: Job[] = [];
  readonly #waiting: Job[] = [];
  /** Batches that had been written by the last slice. */
  #batches = 0;
  #busyUntil = 0;
  #scheduled = false;
  #closed = false;

  constructor(log: Pick<Log, "queued" | "batches">) {
    this.#log = log;
  }

  /**
   * Runs `steps` to its end, other work in between.
   * @returns what it returns
   * @throws CairnlogError `overloaded` when too many wait, `closed`; and whatever it throws
   */
  run<T>(steps: Steps<T>): Promise<T> {
    if (this.#closed) return Promise.reject(closed());
    if (this.#waiting.length >= MAX_WAITING)
      return Promise.reject(new CairnlogError("overloaded", "Too many queries are waiting. Try again shortly."));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ steps, resolve: resolve as (value: unknown) => void, reject });
      this.#schedule();
    });
  }

  /** Ends every query where it stands, its `finally` included, and takes no more. */
  close(): void {
    this.#closed = true;
    for (const { steps, reject } of [...this.#jobs.splice(0), ...this.#waiting.splice(0)]) {
      steps.return(undefined);
      reject(closed());
    }
  }

  #schedule(): void {
    while (this.#jobs.length < MAX_STARTED && this.#waiting.length) this.#jobs.push(this.#waiting.shift()!);
    if (this.#scheduled || !this.#jobs.length) return;
    this.#scheduled = true;
    const turn = () => {
      this.#scheduled = false;
      this.#slice();
      this.#schedule();
    };
    if (this.#isBusy()) setTimeout(turn, PAUSE_MS);
    else setImmediate(turn);
  }

  #isBusy(): boolean {
    const { queued, batches } = this.#log;
    const now = performance.now();
    if (queued || batches !== this.#batches) this.#busyUntil = now + BUSY_MS;
    this.#batches = batches;
    return now < this.#busyUntil;
  }

  /** Gives the job that has waited longest its slice and puts it at the end again. */
  #slice(): void {
    const job = this.#jobs.shift();
    if (!job) return;
    const until = performance.now() + SLICE_MS;
    try {
      do {
        const { done, value } = job.steps.next();
        if (done) {
          job.resolve(value);
          return;
        }
      } while (performance.now() < until);
      this.#jobs.push(job);
    } catch (error) {
      job.reject(error);
    }
  }
}

const closed = (): CairnlogError => new CairnlogError("closed", "The log is closed.");
