/**
 * Values kept while they are in use: a map that forgets what was not asked for longest.
 *
 * The order is a list of its own. A `Map` could keep it, with a deletion and an insertion for each use, but to find its
 * first entry it walks over all that were deleted before: 0.7 µs for each new value where 1,000 are kept and 2.3 where
 * 4,000 are, against 0.3.
 */

/** A value in the order of use. */
class Link<K, V> {
  older: Link<K, V> | null = null;
  newer: Link<K, V> | null = null;
  readonly key: K;
  readonly value: V;

  constructor(key: K, value: V) {
    this.key = key;
    this.value = value;
  }
}

export class Recent<K, V> {
  readonly #limit: number;
  readonly #links = new Map<K, Link<K, V>>();
  #oldest: Link<K, V> | null = null;
  #newest: Link<K, V> | null = null;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The value kept under `key`, or undefined. */
  look(key: K): V | undefined {
    const link = this.#links.get(key);
    if (link && link !== this.#newest) {
      this.#take(link);
      this.#append(link);
    }
    return link?.value;
  }

  /** Keeps `value` under `key`, where nothing is kept, and returns it. */
  keep(key: K, value: V): V {
    if (this.#links.size >= this.#limit) this.delete(this.#oldest!.key);
    const link = new Link(key, value);
    this.#links.set(key, link);
    this.#append(link);
    return value;
  }

  /** The value kept under `key`, or else what `make` gives, which is kept. */
  get(key: K, make: () => V): V {
    return this.look(key) ?? this.keep(key, make());
  }

  delete(key: K): void {
    const link = this.#links.get(key);
    if (!link) return;
    this.#links.delete(key);
    this.#take(link);
    // Otherwise an old link that is collected late would keep all that were newer than it.
    link.older = link.newer = null;
  }

  clear(): void {
    this.#links.clear();
    this.#oldest = this.#newest = null;
  }

  #append(link: Link<K, V>): void {
    link.older = this.#newest;
    link.newer = null;
    if (this.#newest) this.#newest.newer = link;
    else this.#oldest = link;
    this.#newest = link;
  }

  #take({ older, newer }: Link<K, V>): void {
    if (older) older.newer = newer;
    else this.#oldest = newer;
    if (newer) newer.older = older;
    else this.#newest = older;
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
