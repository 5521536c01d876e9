/**
 * Worker threads for signatures and for checking a whole log. A round trip costs 30–100 µs, so callers send batches.
 */
import { availableParallelism } from "node:os";
import { Piscina } from "piscina";

/** Threads when nothing is said: leave one core to the sequencer. */
export const defaultWorkers = (): number => Math.max(1, availableParallelism() - 1);

/** Runs exported functions of worker modules. Several logs may share one. */
export interface Pool {
  readonly workers: number;
  /** Calls the function `name` that the module at `url` exports. `transfer` moves buffers instead of copying them. */
  run<T>(url: URL, name: string, input: unknown, transfer?: readonly ArrayBuffer[]): Promise<T>;
  /** Takes no more tasks, waits for those that it has, and ends the threads. */
  close(): Promise<void>;
}

/** Starts no thread until the first task. */
export function createPool(workers: number = defaultWorkers()): Pool {
  let piscina: Piscina | null = null;
  let closed = false;
  const running = new Set<Promise<unknown>>();
  const start = (url: URL) =>
    new Piscina({
      filename: url.href,
      minThreads: 0,
      maxThreads: workers,
      idleTimeout: 30_000,
      concurrentTasksPerWorker: 1,
    });
  return {
    workers,
    run<T>(url: URL, name: string, input: unknown, transfer: readonly ArrayBuffer[] = []): Promise<T> {
      if (closed) return Promise.reject(new Error("the worker pool is closed"));
      piscina ??= start(url);
      const task = piscina.run(input, { filename: url.href, name, transferList: [...transfer] }) as Promise<T>;
      running.add(task);
      const done = () => void running.delete(task);
      task.then(done, done);
      return task;
    },
    async close() {
      closed = true;
      // A thread's answer to a task that was taken from it would be an error that nobody can catch.
      await Promise.allSettled(running);
      await piscina?.destroy();
    },
  };
}
