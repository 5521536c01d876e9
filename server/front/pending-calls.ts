/**
 * Those who wait for an answer, by numbers that are given again.
 *
 * A `Map` would do, but for garbage collection. While entries come and go, V8 makes its table anew again and again; the old
 * table keeps what it held, and leads to the new one. As soon as one table lives where a young collection does not look, it
 * keeps all that follow alive, with everybody who waited in them: they are copied twice, and marked, until the whole heap is
 * collected, which begins with the next table. With 64 requests in flight a front end kept 1,900 bytes of each in that way.
 */
export class PendingCalls<T> {
  readonly #places: (T | undefined)[] = [];
  /** Numbers of places that are empty. */
  readonly #free: number[] = [];

  /** @returns the number to `take` it by */
  add(one: T): number {
    const place = this.#free.pop() ?? this.#places.length;
    this.#places[place] = one;
    return place;
  }

  /** Who waits under a number, and does so no more. */
  take(place: number): T {
    const one = this.#places[place]!;
    this.#places[place] = undefined;
    this.#free.push(place);
    return one;
  }

  /** All of them, who wait no more. */
  takeAll(): T[] {
    this.#free.length = 0;
    return this.#places.splice(0).filter((one) => one !== undefined);
  }
}
