/** Collects the results of several pieces of work. Each piece calls one of two functions when it ends. */
export class Gathering<T> {
  readonly #results: PromiseSettledResult<T>[];
  #open: number;
  #resolve: (results: PromiseSettledResult<T>[]) => void = () => {};
  /** In the order of the places, when each has its result. Never rejects. */
  readonly all: Promise<PromiseSettledResult<T>[]>;

  constructor(count: number) {
    this.#results = new Array(count);
    this.#open = count;
    this.all = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    if (!count) this.#resolve(this.#results);
  }

  /** The functions of place `i`; the first call of either counts. */
  place(i: number): readonly [done: (value: T) => void, fail: (reason: unknown) => void] {
    return [
      (value) => this.#take(i, { status: "fulfilled", value }),
      (reason) => this.#take(i, { status: "rejected", reason }),
    ];
  }

  #take(i: number, result: PromiseSettledResult<T>): void {
    if (this.#results[i]) return;
    this.#results[i] = result;
    if (--this.#open === 0) this.#resolve(this.#results);
  }
}
