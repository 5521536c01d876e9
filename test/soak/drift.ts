/** Detects values that grow without end: fits a line through the samples of each interval between restarts. */

export interface Sample {
  /** Seconds since the start. */
  readonly at: number;
  /** Number of the service; a new one runs after each restart. */
  readonly service: number;
  /**
   * Resident memory in bytes: all of it, and the process's own part. The rest is the part of the mapped file that was
   * read.
   */
  readonly rss: number;
  readonly ownMemory: number;
  readonly descriptors: number;
  /** Since the beginning of the run. */
  readonly requests: number;
  readonly disk: number;
  /** Milliseconds for the requests since the last sample; NaN if there were none. */
  readonly p50: number;
  readonly p99: number;
  readonly perSecond: number;
}

/** The part of an interval that is ignored, because caches fill and the heap reaches its size. */
const WARM_UP = 1 / 3;

/** The rise of the fitted line through `points` from its beginning to its end. */
export function rise(points: readonly { readonly x: number; readonly y: number }[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map((point) => point.x)), mean(points.map((point) => point.y))];
  const squares = points.reduce((sum, point) => sum + (point.x - x) ** 2, 0);
  const products = points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0);
  return squares ? (products / squares) * (points.at(-1)!.x - points[0]!.x) : 0;
}

/** One sentence for each interval and value that rises by more than `share` of its mean and more than `slack`. */
export function drifts(
  samples: readonly Sample[],
  what: "ownMemory" | "descriptors",
  share: number,
  slack: number,
): string[] {
  const services = [...new Set(samples.map(({ service }) => service))];
  return services.flatMap((service) => {
    const stretch = samples.filter((sample) => sample.service === service);
    const settled = stretch.slice(Math.floor(stretch.length * WARM_UP));
    if (settled.length < 5) return [];
    const points = settled.map((sample) => ({ x: sample.at, y: sample[what] }));
    const mean = points.reduce((sum, { y }) => sum + y, 0) / points.length;
    const risen = rise(points);
    const isDrift = risen > share * mean && risen > slack;
    return isDrift
      ? [`${what} rose by ${Math.round(risen)} from a mean of ${Math.round(mean)} in service ${service}`]
      : [];
  });
}

/** A sentence for each interval in which the file grew by more for a request in its last third than in the one before. */
export function growths(samples: readonly Sample[], share: number): string[] {
  const services = [...new Set(samples.map(({ service }) => service))];
  return services.flatMap((service) => {
    const stretch = samples.filter((sample) => sample.service === service);
    const third = Math.floor(stretch.length / 3);
    if (third < 5) return [];
    const [, before, last] = [0, 1, 2].map((n) => bytesOfRequest(stretch.slice(n * third, (n + 1) * third + 1)));
    return last! > (1 + share) * before!
      ? [
          `the file grew by ${Math.round(before!)}, then by ${Math.round(last!)} bytes for each request in service ${service}`,
        ]
      : [];
  });
}

const bytesOfRequest = (samples: readonly Sample[]): number =>
  (samples.at(-1)!.disk - samples[0]!.disk) / (samples.at(-1)!.requests - samples[0]!.requests);
