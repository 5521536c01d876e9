/**
 * Long queries in slices. Appends are formed on the same thread. A query that could take seconds is therefore a
 * generator that pauses often, and all such queries together get one short slice in each turn of the event loop.
 */
import { CairnlogError } from "../../base/error.js";
import { type Steps, turn } from "../../base/turns.js";
import type { Writer } from "../../log/state/executor.js";

/**
 * Milliseconds for all queries together in one turn of the event loop. A batch of appends takes a few turns, and waits
 * this long in each. An idle event loop turns so fast that short slices cost nothing.
 */
const SLICE_MS = 0.5;
/** Milliseconds of pause after a slice while appends are being made, so that these get most of the thread. */
const PAUSE_MS = 1;
/** Milliseconds after a batch in which the log counts as busy. The batches of a busy log follow one another faster. */
const BUSY_MS = 50;
/** Maximum number of queries that wait to begin. Anybody may ask for queries. */
const MAX_WAITING = 256;
/**
 * Maximum number of queries that run at the same time. Each may hold a snapshot, and LMDB has a limited number of them.
 */
const MAX_STARTED = 16;

interface Job {
  readonly steps: Steps<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Runs queries in turns, one slice at a time. */
export class Slices {
  readonly #writer: Pick<Writer, "queued" | "batches">;
  /** Running queries, in the order of their next slices, and queries that have not begun. */
  readonly #jobs: Job[] = [];
  readonly #waiting: Job[] = [];
  /** Number of batches that had been written at the last slice. */
  #batches = 0;
  #busyUntil = 0;
  #scheduled = false;
  #closed = false;

  constructor(writer: Pick<Writer, "queued" | "batches">) {
    this.#writer = writer;
  }

  /**
   * Runs `steps` to its end, with other work in between.
   * @returns the result of `steps`
   * @throws CairnlogError `overloaded` when too many wait, `closed`; and any error of `steps`
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

  /** Ends every query, runs its `finally` blocks, and accepts no more. */
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
    const slice = () => {
      this.#scheduled = false;
      this.#slice();
      this.#schedule();
    };
    if (this.#isBusy()) setTimeout(slice, PAUSE_MS);
    else void turn().then(slice);
  }

  #isBusy(): boolean {
    const { queued, batches } = this.#writer;
    const now = performance.now();
    if (queued || batches !== this.#batches) this.#busyUntil = now + BUSY_MS;
    this.#batches = batches;
    return now < this.#busyUntil;
  }

  /** Gives a slice to the job that has waited longest, and moves it to the end. */
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
