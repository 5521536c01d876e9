/** Rates between two measurements of the counters. */
import type { Labels, Measurements } from "./prometheus.js";

/** Rates of one interval; null if a rate is unknown. */
export interface Rates {
  /** End of the interval, milliseconds since 1970. */
  readonly at: number;
  /** Entries a second. */
  readonly appends: number | null;
  readonly batches: number | null;
  /** Entries a batch. */
  readonly batchSize: number | null;
  /** Number of waiting appends at the end. */
  readonly queue: number | null;
  /** Duration of writing requests in milliseconds: the median, and the 99th percentile. */
  readonly median: number | null;
  readonly slowest: number | null;
  /** Deliveries a second, successful and failed. */
  readonly delivered: number | null;
  readonly failed: number | null;
  /** Number of waiting deliveries. */
  readonly outbox: number | null;
  readonly pendingAnchors: number | null;
  readonly confirmedAnchors: number | null;
  /** Requests a second that were refused, and that failed because of the service. */
  readonly refused: number | null;
  readonly errors: number | null;
  /** GiB free on the disk of the log. */
  readonly disk: number | null;
  /** Fraction of one processor. */
  readonly cpu: number | null;
  /** MiB, resident. */
  readonly memory: number | null;
}

const DURATIONS = "cairnlog_http_request_duration_seconds";
const writes = ({ method }: Labels): boolean => method === "POST";
const failed = ({ status }: Labels): boolean => Number(status) >= 500;

/** If a counter has gone backwards, the service was restarted, and the rates of that interval are unknown. */
export function ratesBetween(before: Measurements, after: Measurements): Rates {
  const seconds = (after.at - before.at) / 1000;
  const grown = (name: string, fits?: (labels: Labels) => boolean): number | null => {
    const [from, to] = [before.sum(name, fits), after.sum(name, fits)];
    return from === undefined || to === undefined || to < from ? null : to - from;
  };
  const perSecond = (name: string, fits?: (labels: Labels) => boolean): number | null => {
    const growth = grown(name, fits);
    return growth === null || seconds <= 0 ? null : growth / seconds;
  };
  // Of what has never happened there is no count yet.
  const seldom = (name: string, fits?: (labels: Labels) => boolean): number | null =>
    after.sum(name, fits) === undefined ? 0 : before.sum(name, fits) === undefined ? null : perSecond(name, fits);
  const now = (name: string, fits?: (labels: Labels) => boolean): number | null => after.sum(name, fits) ?? null;
  const [appends, batches] = [grown("cairnlog_appends_total"), grown("cairnlog_batches_total")];
  return {
    at: after.at,
    appends: perSecond("cairnlog_appends_total"),
    batches: perSecond("cairnlog_batches_total"),
    batchSize: appends !== null && batches ? appends / batches : null,
    queue: now("cairnlog_append_queue"),
    median: milliseconds(quantile(before, after, 0.5)),
    slowest: milliseconds(quantile(before, after, 0.99)),
    delivered: perSecond("cairnlog_webhook_delivered_total"),
    failed: perSecond("cairnlog_webhook_failed_total"),
    outbox: now("cairnlog_webhook_outbox"),
    pendingAnchors: now("cairnlog_anchors", ({ status }) => status === "pending"),
    confirmedAnchors: now("cairnlog_anchors", ({ status }) => status === "confirmed"),
    refused: seldom("cairnlog_refusals_total"),
    errors: seldom("cairnlog_http_requests_total", failed),
    disk: scaled(now("cairnlog_disk_free_bytes"), 2 ** 30),
    cpu: perSecond("process_cpu_seconds_total"),
    memory: scaled(now("process_resident_memory_bytes"), 2 ** 20),
  };
}

/** In seconds, interpolated linearly within the histogram's buckets; null if nothing was counted. */
function quantile(before: Measurements, after: Measurements, share: number): number | null {
  const earlier = before.buckets(DURATIONS, writes);
  const counts = [...after.buckets(DURATIONS, writes)].map(([bound, count]) => ({
    bound,
    count: count - (earlier.get(bound) ?? 0),
  }));
  const total = counts.at(-1)?.count ?? 0;
  if (total <= 0) return null;
  let lower = { bound: 0, count: 0 };
  for (const bucket of counts) {
    if (bucket.count >= share * total) {
      if (!Number.isFinite(bucket.bound)) return lower.bound;
      const within = (share * total - lower.count) / Math.max(1e-9, bucket.count - lower.count);
      return lower.bound + within * (bucket.bound - lower.bound);
    }
    lower = bucket;
  }
  return lower.bound;
}

const scaled = (bytes: number | null, unit: number): number | null => (bytes === null ? null : bytes / unit);
const milliseconds = (seconds: number | null): number | null => (seconds === null ? null : seconds * 1000);
