/**
 * Counts requests by status and duration. The counts are plain numbers, which become metrics only when Prometheus asks:
 * finding a counter by its labels cost 3 µs for each read request.
 */
import { Counter, type Metric, type Registry } from "prom-client";

/** Seconds. An append takes a few milliseconds, a verification of the whole log takes minutes. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];
const DURATION = "cairnlog_http_request_duration_seconds";
const DURATION_HELP = "From the last header read to the last byte written.";

/**
 * The requests of one method on one route. The service chooses both texts: a client that could choose them could fill
 * memory.
 */
export class Tally {
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

  constructor(registry: Registry) {
    const tallies = this.#tallies;
    new Counter({
      name: "cairnlog_http_requests_total",
      help: "Requests answered.",
      labelNames: ["method", "route", "status"],
      registers: [registry],
      collect() {
        this.reset();
        for (const { method, route, statuses } of tallies)
          for (const [status, count] of statuses) this.inc({ method, route, status }, count);
      },
    });
    // A histogram of the library takes its values one by one. A registry needs only a metric's name and this function.
    const get = async () => {
      const values = tallies.filter(({ statuses }) => statuses.size > 0).flatMap(samplesOf);
      return { name: DURATION, help: DURATION_HELP, type: "histogram", values };
    };
    const durations = { name: DURATION, get };
    registry.registerMetric(durations as unknown as Metric);
  }

  /** A new tally. It is shown when it has counted something. */
  open(method: string, route: string): Tally {
    const tally = new Tally(method, route);
    this.#tallies.push(tally);
    return tally;
  }
}

interface Sample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** The samples of one tally. Prometheus needs cumulative buckets. */
function samplesOf({ method, route, buckets, seconds }: Tally): Sample[] {
  const labels = { method, route };
  const samples: Sample[] = [];
  let count = 0;
  for (const [i, answers] of buckets.entries()) {
    count += answers;
    samples.push({ metricName: `${DURATION}_bucket`, labels: { le: BOUNDS[i] ?? "+Inf", ...labels }, value: count });
  }
  samples.push({ metricName: `${DURATION}_sum`, labels, value: seconds });
  samples.push({ metricName: `${DURATION}_count`, labels, value: count });
  return samples;
}
