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
