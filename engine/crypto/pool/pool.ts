/**
 * Worker threads for signatures and for checking a whole log. A round trip costs 30–100 µs, so callers send batches.
 */
import { availableParallelism } from "node:os";
import { Piscina } from "piscina";
import { CairnlogError } from "../../base/error.js";

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

/** Creates a pool. It starts no thread until the first task. */
export function createPool(workers: number = defaultWorkers()): Pool {
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
