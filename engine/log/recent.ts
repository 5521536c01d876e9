/**
 * Values kept while they are in use: a map that forgets what was not asked for lately. For what never changes. Two
 * generations, so that to find a value moves nothing: keeping a map in order of use cost as much as a hash at each look.
 */
export class Recent<K, V> {
  /** Half of what is kept. */
  readonly #generation: number;
  #young = new Map<K, V>();
  #old = new Map<K, V>();

  /** @param limit values kept at most; the half of them asked for last are kept surely */
  constructor(limit: number) {
    this.#generation = Math.ceil(limit / 2);
  }

  /** The value kept under `key`, or else what `make` gives. */
  get(key: K, make: () => V): V {
    const kept = this.#young.get(key);
    if (kept !== undefined) return kept;
    const value = this.#old.get(key) ?? make();
    if (this.#young.size >= this.#generation) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
    return value;
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }
}
