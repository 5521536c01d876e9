/** Values kept while they are in use: a map that forgets what was not asked for longest. */
import { LRUCache } from "lru-cache";

export class Recent<K extends string | number, V extends NonNullable<unknown>> extends LRUCache<K, V> {
  constructor(limit: number) {
    // The option `max` would allocate the whole limit at once: 1 MB for each open log.
    super({ maxSize: limit, sizeCalculation: () => 1 });
  }

  /** The value kept under `key`, or else what `make` gives, which is kept. */
  made(key: K, make: () => V): V {
    const known = this.get(key);
    if (known !== undefined) return known;
    const value = make();
    this.set(key, value);
    return value;
  }
}

const LATELY = 1024;

/**
 * Which keys were asked for lately. What is asked for once is mostly not asked for again: to keep each such value costs as
 * much as making it, because the garbage collector first moves it to where values live long.
 */
export class Lately {
  /** The last key of each place. */
  readonly #keys = new Float64Array(LATELY).fill(-1);

  /** Whether `key`, an integer that is not negative, was asked for lately; from now on it was. */
  again(key: number): boolean {
    const place = key % LATELY;
    if (this.#keys[place] === key) return true;
    this.#keys[place] = key;
    return false;
  }
}
