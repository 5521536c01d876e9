/** A stage holds one batch at a time; batches pass in the order in which they asked. */
export class Gate {
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
}
