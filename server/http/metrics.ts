/**
 * What is measured, for Prometheus. A registry of its own: several services may live in one process. Nothing observes
 * in the background; what can be asked for is asked for when somebody looks.
 */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { parseTimestamp } from "../../engine/log/clock.js";
import type { Log } from "../../engine/log/log.js";
import type { Outbox } from "../../engine/registry/outbox.js";

/** Seconds; an append takes a few milliseconds, a verification of the whole log minutes. */
const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];

export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Counter<"method" | "route" | "status">;
  readonly #durations: Histogram<"method" | "route">;

  constructor(log: Pick<Log, "size" | "batches" | "queued" | "anchors">) {
    const registers = [this.#registry];
    this.#requests = new Counter({
      name: "cairnlog_http_requests_total",
      help: "Requests answered.",
      labelNames: ["method", "route", "status"],
      registers,
    });
    this.#durations = new Histogram({
      name: "cairnlog_http_request_duration_seconds",
      help: "From the last header read to the last byte written.",
      labelNames: ["method", "route"],
      buckets: DURATIONS,
      registers,
    });
    const sizeAtStart = log.size;
    const started = Date.now() / 1000 - process.uptime();
    const cpu = () => Object.values(process.cpuUsage()).reduce((sum, micros) => sum + micros, 0) / 1e6;
    this.#asked(Gauge, "cairnlog_log_entries", "Entries in the log.", () => log.size);
    this.#asked(Gauge, "cairnlog_append_queue", "Appends waiting for their batch.", () => log.queued);
    this.#asked(Counter, "cairnlog_appends_total", "Entries appended since the start.", () => log.size - sizeAtStart);
    this.#asked(Counter, "cairnlog_batches_total", "Batches written since the start.", () => log.batches);
    this.#asked(Counter, "process_cpu_seconds_total", "CPU time of the process, all threads.", cpu);
    this.#asked(Gauge, "process_start_time_seconds", "When the process started, Unix time.", () => started);
    this.#asked(Gauge, "process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
    this.#anchors(log);
    this.#asked(Gauge, "nodejs_heap_used_bytes", "JavaScript heap in use.", () => process.memoryUsage().heapUsed);
  }

  #anchors({ anchors }: Pick<Log, "anchors">): void {
    new Gauge({
      name: "cairnlog_anchors",
      help: "Anchored entries, by how far their proof has come.",
      labelNames: ["status"],
      registers: [this.#registry],
      collect() {
        const { pending, confirmed } = anchors.totals;
        this.set({ status: "pending" }, pending);
        this.set({ status: "confirmed" }, confirmed);
      },
    });
    this.#asked(Gauge, "cairnlog_anchor_oldest_pending_seconds", "Age of the oldest pending anchor, or 0.", () => {
      const oldest = anchors.oldestPending();
      return oldest === null ? 0 : Math.max(0, Date.now() / 1000 - parseTimestamp(oldest) / 1e6);
    });
  }

  /** Shows how webhook deliveries go. */
  watchDeliveries(made: { readonly delivered: number; readonly failed: number }, outbox: Pick<Outbox, "size">): void {
    this.#asked(Gauge, "cairnlog_webhook_outbox", "Webhook deliveries that wait.", () => outbox.size);
    this.#asked(Counter, "cairnlog_webhook_delivered_total", "Webhook deliveries made.", () => made.delivered);
    this.#asked(Counter, "cairnlog_webhook_failed_total", "Webhook attempts that failed.", () => made.failed);
  }

  /** A metric without labels whose value is asked for at each look. */
  #asked(Kind: typeof Gauge | typeof Counter, name: string, help: string, value: () => number): void {
    const collect = function (this: Gauge | Counter) {
      this.reset();
      this.inc(value());
    };
    new Kind({ name, help, registers: [this.#registry], collect });
  }

  /** One request answered. All three texts are ours: a client that could choose them could fill memory. */
  answered(method: string, route: string, status: number, seconds: number): void {
    this.#requests.inc({ method, route, status });
    this.#durations.observe({ method, route }, seconds);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The Prometheus text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
