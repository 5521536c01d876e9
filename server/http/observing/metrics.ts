/**
 * Metrics for Prometheus. They have a registry of their own, because several services may run in one process. Values
 * that can be read at any time are read when Prometheus asks. A batch is observed as a whole, not entry by entry.
 */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { SocketSigner } from "../../../engine/crypto/signer/socket-signer.js";
import { parseTimestamp } from "../../../engine/log/clock.js";
import type { Log } from "../../../engine/log/log.js";
import type { Outbox } from "../../../engine/registry/webhooks/outbox.js";
import type { Webhooks } from "../../../engine/registry/webhooks/webhooks.js";
import type { Anchoring } from "../../anchoring/anchoring.js";
import { openFileLimit, openFiles } from "../../machine.js";
import { VERSION } from "../../version.js";
import type { PendingBytes } from "../transport/pending.js";
import type { TransportName } from "../transport/transport.js";
import type { Uploads } from "../transport/uploads.js";
import { Tallies } from "./tallies.js";

/** Bounds for one stage of a batch, in seconds. */
const STAGE_DURATIONS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** Milliseconds between two measurements of the delay of timers. */
const DELAY_RESOLUTION_MS = 20;

/** The values of the HTTP server that are shown. */
export interface HttpFigures {
  readonly transport: TransportName;
  readonly uploads: Pick<Uploads, "arriving" | "pending">;
  readonly answers: PendingBytes;
  readonly connections: number;
  readonly connectionsRefused: number;
  readonly inFlight: number;
}

/** Minimum milliseconds between two renderings of the text. */
const TEXT_INTERVAL_MS = 100;

export class Metrics {
  /** The text that will be rendered next, if a client waits for it, and the time of the last rendering. */
  #next: Promise<string> | null = null;
  #written = Number.NEGATIVE_INFINITY;
  readonly #registry = new Registry();
  /** Answered requests by route. */
  readonly tallies: Tallies;
  readonly #refusals: Counter<"code">;
  readonly #aborted: Counter;
  readonly #delay: IntervalHistogram = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });

  constructor(
    log: Pick<Log, "size" | "batches" | "queued" | "anchors" | "treeHead" | "observeBatches" | "lastFailure">,
  ) {
    const registers = [this.#registry];
    this.#refusals = new Counter({
      name: "cairnlog_refusals_total",
      help: "Requests refused, by the code of the problem document.",
      labelNames: ["code"],
      registers,
    });
    this.#aborted = new Counter({
      name: "cairnlog_http_aborted_total",
      help: "Requests whose client left before the answer was sent.",
      registers,
    });
    new Gauge({ name: "cairnlog_info", help: "The version of the service.", labelNames: ["version"], registers }).set(
      { version: VERSION },
      1,
    );
    this.tallies = new Tallies(this.#registry);
    const sizeAtStart = log.size;
    const started = Date.now() / 1000 - process.uptime();
    const cpu = () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    };
    this.#asked(Gauge, "cairnlog_log_entries", "Entries in the log.", () => log.size);
    this.#asked(Gauge, "cairnlog_append_queue", "Appends waiting for their batch.", () => log.queued);
    this.#asked(Counter, "cairnlog_appends_total", "Entries appended since the start.", () => log.size - sizeAtStart);
    this.#asked(Counter, "cairnlog_batches_total", "Batches written since the start.", () => log.batches);
    this.#asked(Counter, "process_cpu_seconds_total", "CPU time of the process, all threads.", cpu);
    this.#asked(Gauge, "process_start_time_seconds", "When the process started, Unix time.", () => started);
    this.#asked(Gauge, "process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
    this.#asked(Gauge, "cairnlog_last_batch_failed", "1 when the newest batch was not signed or written.", () =>
      log.lastFailure ? 1 : 0,
    );
    this.#asked(Gauge, "cairnlog_tree_head_seconds", "Unix time of the newest tree head, or 0.", () => {
      const head = log.treeHead();
      return head ? parseTimestamp(head.timestamp) / 1e6 : 0;
    });
    this.#batches(log);
    this.#anchors(log);
    this.#process();
  }

  #batches(log: Pick<Log, "observeBatches">): void {
    const registers = [this.#registry];
    const sizes = new Histogram({
      name: "cairnlog_batch_entries",
      help: "Entries of a batch.",
      buckets: BATCH_SIZES,
      registers,
    });
    const stages = new Histogram({
      name: "cairnlog_batch_stage_duration_seconds",
      help: "What a batch took to be formed, signed and written.",
      labelNames: ["stage"],
      buckets: STAGE_DURATIONS,
      registers,
    });
    log.observeBatches(({ entries, forming, signing, writing }) => {
      sizes.observe(entries);
      stages.observe({ stage: "form" }, forming);
      stages.observe({ stage: "sign" }, signing);
      stages.observe({ stage: "write" }, writing);
    });
  }

  #process(): void {
    const memory = process.memoryUsage;
    this.#asked(Gauge, "nodejs_heap_used_bytes", "JavaScript heap in use.", () => memory().heapUsed);
    this.#asked(Gauge, "nodejs_external_bytes", "Memory of buffers outside the heap.", () => memory().external);
    this.#asked(Gauge, "process_open_fds", "Open files and sockets.", () => openFiles() ?? Number.NaN);
    this.#asked(Gauge, "process_max_fds", "Files and sockets it may open.", () => openFileLimit() ?? Number.NaN);
    const delay = this.#delay;
    delay.enable();
    new Gauge({
      name: "nodejs_eventloop_delay_seconds",
      help: "How late timers came since the last look: the time for which the main thread was busy.",
      labelNames: ["quantile"],
      registers: [this.#registry],
      collect() {
        for (const percentile of [50, 99])
          this.set({ quantile: percentile / 100 }, lateness(delay.percentile(percentile) || 0));
        this.set({ quantile: 1 }, lateness(delay.count ? delay.max : 0));
        delay.reset();
      },
    });
  }

  /** Shows the resources that the HTTP server holds for its clients. */
  watchHttp(http: HttpFigures): void {
    const { uploads, answers, transport } = http;
    new Gauge({
      name: "cairnlog_http_info",
      help: "The HTTP library that serves: uws or node.",
      labelNames: ["transport"],
      registers: [this.#registry],
    }).set({ transport }, 1);
    this.#asked(Gauge, "cairnlog_http_connections", "Open connections.", () => http.connections);
    this.#asked(
      Counter,
      "cairnlog_http_connections_refused_total",
      "Connections closed at once because there were too many.",
      () => http.connectionsRefused,
    );
    this.#asked(Gauge, "cairnlog_http_in_flight", "Requests being handled or answered.", () => http.inFlight);
    this.#asked(Gauge, "cairnlog_http_arriving", "Bodies that have not arrived in full.", () => uploads.arriving);
    this.#asked(Gauge, "cairnlog_http_body_bytes", "Bytes of bodies held.", () => uploads.pending.held);
    this.#asked(Gauge, "cairnlog_http_slow_answers", "Answers that are read slowly.", () => answers.waiting);
    this.#asked(Gauge, "cairnlog_http_answer_bytes", "Bytes held of answers that are read slowly.", () => answers.held);
    this.#asked(
      Counter,
      "cairnlog_http_given_up_total",
      "Bodies and answers given up to make room for others.",
      () => uploads.pending.givenUp + answers.givenUp,
    );
  }

  /** Shows the free space of the disk and the use of the log's file. */
  watchDisk(disk: { freeBytes(): number; readonly usage: Log["diskUsage"] }): void {
    this.#asked(Gauge, "cairnlog_disk_free_bytes", "Bytes free on the disk of the log.", () => disk.freeBytes());
    this.#asked(Gauge, "cairnlog_store_bytes", "Size of the log's files.", () => disk.usage.fileBytes);
    this.#asked(
      Gauge,
      "cairnlog_store_max_bytes",
      "Size that the file of the log's entries can grow to.",
      () => disk.usage.mapBytes,
    );
    this.#asked(Gauge, "cairnlog_store_readers", "Reads of the log's file that are open.", () => disk.usage.readers);
  }

  /** Shows whether the signer that holds the operator key is there. */
  watchSigner(signer: Pick<SocketSigner, "trouble">): void {
    this.#asked(Gauge, "cairnlog_signer_connected", "1 while the signer of SERVICE_SIGNER is connected.", () =>
      signer.trouble ? 0 : 1,
    );
  }

  /** Shows the state of anchoring. */
  watchAnchoring(anchoring: Pick<Anchoring, "status" | "failures">): void {
    const { status } = anchoring;
    const ask = status.bind(anchoring);
    this.#asked(Gauge, "cairnlog_anchor_due", "1 when the log should be anchored.", () => (ask().anchor_due ? 1 : 0));
    this.#asked(
      Gauge,
      "cairnlog_entries_since_anchor",
      "Entries after the newest anchored one.",
      () => ask().entries_since_anchor,
    );
    this.#asked(
      Counter,
      "cairnlog_calendar_failures_total",
      "Calendars that gave no usable answer.",
      () => anchoring.failures,
    );
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

  /** Shows the state of webhook deliveries. */
  watchDeliveries(
    made: { readonly delivered: number; readonly failed: number },
    webhooks: Pick<Webhooks, "unhealthy"> & { readonly outbox: Pick<Outbox, "size"> },
  ): void {
    const { outbox } = webhooks;
    this.#asked(Gauge, "cairnlog_webhook_unhealthy", "Endpoints that are unhealthy.", () => webhooks.unhealthy);
    this.#asked(Gauge, "cairnlog_webhook_outbox", "Webhook deliveries that wait.", () => outbox.size);
    this.#asked(Counter, "cairnlog_webhook_delivered_total", "Webhook deliveries made.", () => made.delivered);
    this.#asked(Counter, "cairnlog_webhook_failed_total", "Webhook attempts that failed.", () => made.failed);
  }

  /** A metric without labels whose value is read whenever Prometheus asks. */
  #asked(Kind: typeof Gauge | typeof Counter, name: string, help: string, value: () => number): void {
    const collect = function (this: Gauge | Counter) {
      this.reset();
      this.inc(value());
    };
    new Kind({ name, help, registers: [this.#registry], collect });
  }

  /** Counts a refused request, by its error code, which the service chose. */
  refused(code: string): void {
    this.#refusals.inc({ code });
  }

  /** Counts a request whose client closed the connection. */
  aborted(): void {
    this.#aborted.inc();
  }

  /** Stops measuring. */
  close(): void {
    this.#delay.disable();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /**
   * The Prometheus text format, with the current values or those of some milliseconds later. Nobody limits these
   * requests, and rendering takes milliseconds. The text is therefore rendered at most ten times a second, and all
   * waiting clients get the same text.
   */
  text(): Promise<string> {
    this.#next ??= this.#write();
    return this.#next;
  }

  async #write(): Promise<string> {
    const wait = this.#written + TEXT_INTERVAL_MS - performance.now();
    await new Promise((resolve) => (wait > 0 ? setTimeout(resolve, wait) : setImmediate(resolve)));
    // A client that asks from now on may already know of newer events, so it waits for the next text.
    this.#next = null;
    this.#written = performance.now();
    return this.#registry.metrics();
  }
}

/** Seconds by which a timer was late. Timers are never early. The measured value is the whole interval. */
const lateness = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - DELAY_RESOLUTION_MS / 1000);
