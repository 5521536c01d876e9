/**
 * Counts requests by status and duration. The counts are plain numbers, which become metrics only when Prometheus asks:
 * finding a counter by its labels cost 3 µs for each read request.
 */

/** Bounds of the buckets in seconds. An append takes a few milliseconds, a verification of the whole log takes minutes. */
export const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];

/** The counts of a tally. Plain data, for a message to another thread. */
export interface TallyFigures {
  readonly method: string;
  readonly route: string;
  /** Answers by status. */
  readonly statuses: ReadonlyMap<number, number>;
  /** Number of answers in each bucket, which ends at the bound of the same index; the last has all slower answers. */
  readonly buckets: Float64Array;
  readonly seconds: number;
}

/**
 * The requests of one method on one route. The service chooses both texts: a client that could choose them could fill
 * memory.
 */
export class Tally implements TallyFigures {
  readonly method: string;
  readonly route: string;
  /** Answers by status. */
  readonly statuses = new Map<number, number>();
  /** Number of answers in each bucket, which ends at the bound of the same index; the last has all slower answers. */
  readonly buckets = new Float64Array(BOUNDS.length + 1);
  seconds = 0;

  constructor(method: string, route: string) {
    this.method = method;
    this.route = route;
  }

  /** Counts one answered request. */
  answered(status: number, seconds: number): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    let bucket = 0;
    while (bucket < BOUNDS.length && seconds > BOUNDS[bucket]!) bucket++;
    this.buckets[bucket]!++;
    this.seconds += seconds;
  }
}

export class Tallies {
  readonly #tallies: Tally[] = [];

  /** A new tally. It is shown when it has counted something. */
  open(method: string, route: string): Tally {
    const tally = new Tally(method, route);
    this.#tallies.push(tally);
    return tally;
  }

  /** The tallies that have counted something. */
  figures(): TallyFigures[] {
    return this.#tallies
      .filter(({ statuses }) => statuses.size > 0)
      .map(({ method, route, statuses, buckets, seconds }) => ({ method, route, statuses, buckets, seconds }));
  }
}

/** The sums of tallies of one method and route, in several front ends. */
export function added(tallies: Iterable<TallyFigures>): TallyFigures[] {
  const sums = new Map<
    string,
    { statuses: Map<number, number>; buckets: Float64Array; seconds: number } & TallyFigures
  >();
  for (const { method, route, statuses, buckets, seconds } of tallies) {
    const name = `${method} ${route}`;
    let sum = sums.get(name);
    if (!sum) {
      sum = { method, route, statuses: new Map(), buckets: new Float64Array(buckets.length), seconds: 0 };
      sums.set(name, sum);
    }
    for (const [status, count] of statuses) sum.statuses.set(status, (sum.statuses.get(status) ?? 0) + count);
    for (const [i, count] of buckets.entries()) sum.buckets[i]! += count;
    sum.seconds += seconds;
  }
  return [...sums.values()];
}
