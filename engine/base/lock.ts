/** How a piece of work gets along with others: it takes its turn at a lock, and those whom it tells of itself cannot break it. */

/** A lock between asynchronous pieces of work of one thread. They hold it in the order in which they asked. */
export class Lock {
  #free: Promise<void> = Promise.resolve();

  /** Resolves when all that entered before have left. @returns leaves again; a second call does nothing */
  async enter(): Promise<() => void> {
    const before = this.#free;
    let leave = () => {};
    this.#free = new Promise((resolve) => {
      leave = resolve;
    });
    await before;
    return leave;
  }

  /** Runs `work` when all that entered before have left, whether they succeeded or not. @throws what `work` throws */
  async run<T>(work: () => T | Promise<T>): Promise<T> {
    const leave = await this.enter();
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** Resolves when all that entered so far have left. */
  async settled(): Promise<void> {
    await this.#free;
  }
}

/**
 * Calls `observer`, a function that a program gave, of what stays as it is, whatever the function throws. That is thrown in a
 * later turn: it is an uncaught error of the program, and whoever calls this goes on and leaves its locks.
 */
export function tell<Told extends readonly unknown[]>(observer: (...told: Told) => void, ...told: Told): void {
  try {
    observer(...told);
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
  }
}
