/** Values kept while they are in use: a map that forgets what was not asked for longest. */
export class Recent<V> {
  readonly #limit: number;
  /** Least recently used first. */
  readonly #values = new Map<string, V>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The value kept under `key`, or else what `make` gives. */
  get(key: string, make: () => V): V {
    return this.find(key, make) as V;
  }

  /** The same where there may be none, which is not kept. */
  find(key: string, look: () => V | undefined): V | undefined {
    let value = this.#values.get(key);
    if (value === undefined) {
      value = look();
      if (value === undefined) return undefined;
      if (this.#values.size >= this.#limit) this.#values.delete(this.#values.keys().next().value!);
    } else this.#values.delete(key);
    this.#values.set(key, value);
    return value;
  }

  delete(key: string): void {
    this.#values.delete(key);
  }

  clear(): void {
    this.#values.clear();
  }
}
