/** The work of deliveries in the background: what runs, the waits in it, and the end of all of it. */
import { CairnlogError } from "../../engine/base/error.js";
import type { Logger } from "../process/logger.js";

/** A timer, which tests replace by their own. Calls `run` once after this many milliseconds, unless the returned function is called before. */
export type Schedule = (milliseconds: number, run: () => void) => () => void;

export const systemSchedule: Schedule = (milliseconds, run) => {
  const timer = setTimeout(run, milliseconds);
  return () => clearTimeout(timer);
};

/** Milliseconds before the log is tried again after it refused. */
const PAUSE_MS = 1_000;

export class BackgroundWork {
  readonly #schedule: Schedule;
  readonly #logger: Logger;
  readonly #tasks = new Set<Promise<void>>();
  /** Functions that end the current waits. */
  readonly #interrupts = new Set<() => void>();
  isStopped = false;

  constructor(schedule: Schedule, logger: Logger) {
    this.#schedule = schedule;
    this.#logger = logger;
  }

  run(task: Promise<void>): void {
    const running = task.finally(() => this.#tasks.delete(running));
    this.#tasks.add(running);
  }

  /** Ends all waits, and resolves when nothing is running any more. */
  async stop(): Promise<void> {
    this.isStopped = true;
    for (const interrupt of [...this.#interrupts]) interrupt();
    while (this.#tasks.size) await Promise.all(this.#tasks);
  }

  /** Whether `work` succeeded. If the log refused it, this pauses before it returns. */
  async tried(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      if (error instanceof CairnlogError && error.code === "closed") this.isStopped = true;
      else this.#logger.error({ err: error }, "webhook deliveries cannot be written down");
      if (!this.isStopped) await this.#pause(PAUSE_MS, this.#schedule);
      return false;
    }
  }

  async leaveThread(milliseconds: number): Promise<void> {
    if (!milliseconds) return;
    await this.#pause(milliseconds, systemSchedule);
  }

  /** The result of `work`, or `late` after this time and at the end of all work, whatever `work` does. */
  async within<T>(milliseconds: number, work: (signal: AbortSignal) => Promise<T>, late: T): Promise<T> {
    const controller = new AbortController();
    const abort = () => controller.abort();
    this.#interrupts.add(abort);
    const cancelTimeout = this.#schedule(milliseconds, abort);
    const aborted = new Promise<T>((resolve) => controller.signal.addEventListener("abort", () => resolve(late)));
    const result = await Promise.race([work(controller.signal), aborted]);
    cancelTimeout();
    this.#interrupts.delete(abort);
    return result;
  }

  #pause(milliseconds: number, schedule: Schedule): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        this.#interrupts.delete(end);
        resolve();
      };
      const cancel = schedule(milliseconds, end);
      this.#interrupts.add(end);
    });
  }
}
