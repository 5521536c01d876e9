/** Values kept while they are in use: a map that forgets what was not asked for longest. For what never changes. */
export class Recent<V> {
  readonly #limit: number;
  /** Least recently used first. */
  readonly #values = new Map<string, V>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The value kept under `key`, or else what `make` gives. */
  get(key: string, make: () => V): V {
    let value = this.#values.get(key);
    if (value === undefined) {
      value = make();
      if (this.#values.size >= this.#limit) this.#values.delete(this.#values.keys().next().value!);
    } else this.#values.delete(key);
    this.#values.set(key, value);
    return value;
  }

  clear(): void {
    this.#values.clear();
  }
}
