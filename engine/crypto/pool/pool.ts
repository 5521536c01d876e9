/**
 * Worker threads for signatures and for checking a whole log. A round trip costs 30–100 µs, so callers send batches.
 */
import { availableParallelism } from "node:os";
import { Piscina } from "piscina";
import { CairnlogError, inputError } from "../../base/error.js";
import { verifySync } from "../keys/signatures.js";
import { keyToBytes, type ServerKey } from "../keys/spki.js";
import { pack } from "./worker.js";

/**
 * Work is shared out among workers: among none, it would never be done, or be done as soon as it began.
 * @throws CairnlogError `invalid-input` for what is no number of threads
 */
export function checkWorkers(workers: unknown): void {
  if (!Number.isInteger(workers) || (workers as number) < 1)
    throw inputError("`workers` takes a whole number from 1 on.");
}

/** Default number of threads: leaves one core to the sequencer. */
const defaultWorkers = (): number => Math.max(1, availableParallelism() - 1);

/** Runs exported functions of worker modules. Several logs may share one pool. */
export interface Pool {
  readonly workers: number;
  /**
   * Calls the function `name` that the module at `url` exports. `transfer` moves buffers instead of copying them.
   * @throws CairnlogError `closed`; `worker-failed` if the function threw or its thread died
   */
  run<T>(url: URL, name: string, input: unknown, transfer?: readonly ArrayBuffer[]): Promise<T>;
  /** Accepts no more tasks, waits for the accepted ones, and ends the threads. */
  close(): Promise<void>;
}

/** Creates a pool. It starts no thread until the first task. @throws CairnlogError `invalid-input` for what is no number of threads */
export function createPool(workers: number = defaultWorkers()): Pool {
  checkWorkers(workers);
  let piscina: Piscina | null = null;
  let closed = false;
  const running = new Set<Promise<unknown>>();
  const start = (url: URL) =>
    new Piscina({
      filename: url.href,
      // Options of this process may not fit a thread: those of `node --input-type=module --eval` do not.
      execArgv: [],
      // At least one thread stays: if a thread died, the tasks behind it would otherwise wait until another task comes.
      minThreads: 1,
      maxThreads: workers,
      idleTimeout: 30_000,
      concurrentTasksPerWorker: 1,
      recordTiming: false,
    }).on("error", () => {
      // A thread that dies without a task is replaced. Without this handler, the event would end the process.
    });
  return {
    workers,
    async run<T>(url: URL, name: string, input: unknown, transfer: readonly ArrayBuffer[] = []): Promise<T> {
      if (closed) throw new CairnlogError("closed", "The worker pool is closed.");
      piscina ??= start(url);
      const task = piscina.run(input, { filename: url.href, name, transferList: [...transfer] }) as Promise<T>;
      running.add(task);
      try {
        return await task;
      } catch (cause) {
        throw new CairnlogError("worker-failed", "A worker thread failed before it finished its task.", { cause });
      } finally {
        running.delete(task);
      }
    },
    async close() {
      closed = true;
      // An answer to a task that was taken away from its thread would be an error that nobody can catch.
      await Promise.allSettled(running);
      await piscina?.destroy();
    },
  };
}

// Signatures are verified in micro-batches: all checks of one turn of the event loop become one task of the pool. If there
// are few and no task is running, they are checked on the calling thread, because a round trip would cost too much.

/** Checks in one task: about 4 ms of work, so that workers share a burst and no check waits long behind others. */
const TASK_CHECKS = 64;

/**
 * Up to this many, divided by the number of workers, are checked on the calling thread: 64 with one worker. A task of
 * the pool costs about 120 µs of CPU on both threads together, mostly for waking threads. On a machine with two cores
 * it costs far more, because the worker takes a core from the main thread: 48 µs an attestation at 64 connections, with
 * 36 checks a task.
 */
const INLINE_CHECKS = 64;
/** The lower limit for any number of workers: below it, a task costs more than a tenth of the work in it. */
const MIN_INLINE_CHECKS = 32;

const WORKER = new URL("./worker.js", import.meta.url);

interface Check {
  readonly key: ServerKey;
  readonly message: Uint8Array;
  readonly signature: Uint8Array;
  readonly done: (valid: boolean) => void;
}

export class SignatureVerifier {
  readonly #pool: Pool | null;
  readonly #inline: number;
  #waiting: Check[] = [];
  #scheduled = false;
  #running = 0;

  /** @param pool null in a thread that is one of many and does its own work */
  constructor(pool: Pool | null) {
    this.#pool = pool;
    this.#inline = Math.max(MIN_INLINE_CHECKS, Math.floor(INLINE_CHECKS / (pool?.workers ?? 1)));
  }

  /** Whether `signature` is a signature by `key` over `message`. Never rejects. */
  verify(key: ServerKey, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
    return new Promise((resolve) => this.check(key, message, signature, resolve));
  }

  /** Like `verify`, for callers that need no promise: calls `done` once, in a later turn. It must not throw. */
  check(key: ServerKey, message: Uint8Array, signature: Uint8Array, done: (valid: boolean) => void): void {
    this.#waiting.push({ key, message, signature, done });
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#dispatch();
    });
  }

  #dispatch(): void {
    if (!this.#pool || (this.#waiting.length <= this.#inline && this.#running === 0)) {
      tell(this.#waiting.splice(0, this.#inline));
      // Whatever else this thread has to do gets its turn in between.
      if (this.#waiting.length) this.#schedule();
      return;
    }
    // While every worker is busy, checks accumulate and make larger tasks.
    while (this.#waiting.length && this.#running < this.#pool.workers)
      this.#run(this.#pool, this.#waiting.splice(0, TASK_CHECKS));
  }

  #run(pool: Pool, checks: readonly Check[]): void {
    this.#running++;
    const packed = pack(checks.flatMap(({ key, message, signature }) => [keyToBytes(key), message, signature]));
    pool
      .run<Uint8Array>(WORKER, "verifyBatch", { checks: packed }, [packed.buffer])
      .then(
        (verdicts) => {
          for (const [i, { done }] of checks.entries()) done(verdicts[i] === 1);
        },
        // The worker died for another reason. The checks are few, so check them here.
        () => tell(checks),
      )
      .finally(() => {
        this.#running--;
        this.#dispatch();
      });
  }
}

/** Verifies all of them before any caller goes on, as the pool does. */
function tell(checks: readonly Check[]): void {
  const verdicts = checks.map(({ key, message, signature }) => verifySync(key, message, signature));
  for (const [i, { done }] of checks.entries()) done(verdicts[i]!);
}
