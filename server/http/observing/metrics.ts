/**
 * Metrics for Prometheus. They have a registry of their own, because several services may run in one process. Values
 * that can be read at any time are read when Prometheus asks. A batch is observed as a whole, not entry by entry.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { turn } from "../../../engine/base/turns.js";
import type { SocketSigner } from "../../../engine/crypto/signer/socket-signer.js";
import type { Log } from "../../../engine/log/log.js";
import { parseTimestamp } from "../../../engine/log/state/clock.js";
import type { LogWriter } from "../../../engine/log/writer.js";
import type { Anchoring } from "../../anchoring/anchoring.js";
import type { CosigningStatus } from "../../cosigning/cosigning.js";
import { openFileLimit, openFiles } from "../../process/machine.js";
import { stderrLines } from "../../process/stderr.js";
import { VERSION } from "../../process/version.js";
import type { ReplicationStatus } from "../../replication/replication.js";
import { addCosigningMetrics } from "./cosigningmetrics.js";
import { Delay, type FrontFigures, type Lateness } from "./measures.js";
import { type Appending, addReplicationMetrics } from "./replicationmetrics.js";
import { addRequestMetrics, requestDurations } from "./requestmetrics.js";

/** Bounds for one stage of a batch, in seconds. */
const STAGE_DURATIONS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** What is shown of how late timers came. */
const LATENESS = [
  ["p50", "the median"],
  ["p99", "the 99th percentile"],
  ["max", "the most"],
] as const;

/** What a front end tells when metrics are shown. */
export interface FrontReport {
  /** Of the front end's thread: `front-1`. */
  readonly thread: string;
  readonly figures: FrontFigures;
  /** Null where the front end shares the writer's thread. */
  readonly lateness: Lateness | null;
}

/** Minimum milliseconds between two renderings of the text. */
const TEXT_INTERVAL_MS = 100;

export class Metrics {
  /** The text that will be rendered next, if a client waits for it, and the time of the last rendering. */
  #next: Promise<string> | null = null;
  #written = Number.NEGATIVE_INFINITY;
  /** Number of texts that were rendered. */
  #texts = 0;
  readonly #registry = new Registry();
  readonly #delay = new Delay();
  #ask: () => Promise<readonly FrontReport[]> = async () => [];
  /** What the front ends told last. */
  #reports: readonly FrontReport[] = [];

  /** @param writer null where the log is written elsewhere */
  constructor(
    log: Pick<Log, "size" | "anchors" | "treeHead">,
    writer: Pick<LogWriter, "batches" | "queued" | "observeBatches" | "lastFailure"> | null,
  ) {
    new Gauge({
      name: "cairnlog_build_info",
      help: "The version of the service.",
      labelNames: ["version"],
      registers: [this.#registry],
    }).set({ version: VERSION }, 1);
    addRequestMetrics(this.#registry, () => this.#reports.map(({ figures }) => figures));
    const sizeAtStart = log.size;
    const started = Date.now() / 1000 - process.uptime();
    const cpu = () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    };
    this.#asked(Gauge, "cairnlog_log_entries", "Entries in the log.", () => log.size);
    this.#asked(Gauge, "cairnlog_append_queue", "Appends waiting for their batch.", () => writer?.queued ?? 0);
    this.#asked(Counter, "cairnlog_appends_total", "Entries appended since the start.", () => log.size - sizeAtStart);
    this.#asked(Counter, "cairnlog_batches_total", "Batches written since the start.", () => writer?.batches ?? 0);
    this.#asked(
      Counter,
      "cairnlog_log_lines_dropped_total",
      "Lines of the service's own log that could not be written.",
      () => stderrLines().dropped.total,
    );
    this.#asked(Counter, "process_cpu_seconds_total", "CPU time of the process, all threads.", cpu);
    this.#asked(Gauge, "process_start_time_seconds", "When the process started, Unix time.", () => started);
    this.#asked(Gauge, "process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
    this.#asked(Gauge, "cairnlog_last_batch_failed", "1 when the newest batch was not signed or written.", () =>
      writer?.lastFailure ? 1 : 0,
    );
    this.#asked(Gauge, "cairnlog_tree_head_timestamp_seconds", "Unix time of the newest tree head, or 0.", () => {
      const head = log.treeHead();
      return head ? parseTimestamp(head.timestamp) / 1e6 : 0;
    });
    this.#batches(writer);
    this.#anchors(log);
    this.#process();
  }

  #batches(writer: Pick<LogWriter, "observeBatches"> | null): void {
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
    writer?.observeBatches(({ entries, forming, signing, writing }) => {
      sizes.observe(entries);
      stages.observe({ stage: "form" }, forming);
      stages.observe({ stage: "sign" }, signing);
      stages.observe({ stage: "write" }, writing);
    });
  }

  #process(): void {
    const memory = this.#perText(() => process.memoryUsage());
    this.#asked(Gauge, "nodejs_heap_used_bytes", "JavaScript heap in use.", () => memory().heapUsed);
    this.#asked(Gauge, "nodejs_external_bytes", "Memory of buffers outside the heap.", () => memory().external);
    this.#asked(Gauge, "process_open_fds", "Open files and sockets.", () => openFiles() ?? Number.NaN);
    this.#asked(Gauge, "process_max_fds", "Files and sockets it may open.", () => openFileLimit() ?? Number.NaN);
    // Names of prom-client's default metrics. One family with a label `quantile` would have to be a summary.
    const latenesses = this.#perText(() => [{ thread: "writer", lateness: this.#delay.take() }, ...this.#reports]);
    for (const [share, words] of LATENESS)
      new Gauge({
        name: `nodejs_eventloop_lag_${share}_seconds`,
        help: `How late timers came since the last look, by thread: ${words}.`,
        labelNames: ["thread"],
        registers: [this.#registry],
        collect() {
          this.reset();
          for (const { thread, lateness } of latenesses()) if (lateness) this.set({ thread }, lateness[share]);
        },
      });
  }

  /** Shows what the front ends count. @param ask what they tell now; must not reject */
  watchFronts(ask: () => Promise<readonly FrontReport[]>): void {
    this.#ask = ask;
  }

  /** Shows the free space of the disk and the use of the log's file. */
  watchDisk(freeBytes: () => number, askUsage: () => Log["diskUsage"]): void {
    this.#asked(Gauge, "cairnlog_disk_free_bytes", "Bytes free on the disk of the log.", freeBytes);
    const usage = this.#perText(askUsage);
    this.#asked(Gauge, "cairnlog_store_bytes", "Size of the log's files.", () => usage().fileBytes);
    this.#asked(
      Gauge,
      "cairnlog_store_max_bytes",
      "Size that the file of the log's entries can grow to.",
      () => usage().mapBytes,
    );
    this.#asked(Gauge, "cairnlog_store_readers", "Reads of the log's file that are open.", () => usage().readers);
    this.#asked(
      Gauge,
      "cairnlog_store_oldest_reader_commits",
      "Commits since the moment that the oldest open read of the log's file shows.",
      () => usage().oldestReader,
    );
  }

  /** Shows whether the signer that holds the operator key is there. */
  watchSigner(signer: Pick<SocketSigner, "trouble">): void {
    this.#asked(Gauge, "cairnlog_signer_connected", "1 while the signer of SERVICE_SIGNER is connected.", () =>
      signer.trouble ? 0 : 1,
    );
  }

  /** Shows whether the clock is believed, and whether the log is ahead of it. */
  watchClock(clock: { readonly clockRefusal: unknown; readonly secondsAhead: number }): void {
    this.#asked(Gauge, "cairnlog_clock_suspect", "1 while nothing is appended because the clock may be wrong.", () =>
      clock.clockRefusal ? 1 : 0,
    );
    this.#asked(
      Gauge,
      "cairnlog_log_ahead_of_clock_seconds",
      "Seconds by which the newest time on the log is ahead of the clock, or 0.",
      () => clock.secondsAhead,
    );
  }

  /** Shows how far the checkpoints at `/tlog/` have come. */
  watchCheckpoints(published: { readonly size: number; readonly trouble: unknown }): void {
    this.#asked(
      Gauge,
      "cairnlog_checkpoint_entries",
      "Entries in the newest checkpoint at /tlog/.",
      () => published.size,
    );
    this.#asked(Gauge, "cairnlog_checkpoint_failed", "1 when the newest checkpoint at /tlog/ could not be made.", () =>
      published.trouble ? 1 : 0,
    );
  }

  /** Shows when the certificate expires. @param expires milliseconds; null without TLS */
  watchCertificate(expires: () => number | null): void {
    new Gauge({
      name: "cairnlog_tls_certificate_expiry_timestamp_seconds",
      help: "Unix time at which the certificate expires; absent without TLS.",
      registers: [this.#registry],
      collect() {
        const at = expires();
        // Of itself it is 0, which would be a certificate that expired long ago.
        if (at === null) this.remove();
        else this.set(at / 1000);
      },
    });
  }

  /** Shows which witnesses have cosigned these checkpoints. @param status null while another node publishes */
  watchCosigning(status: () => CosigningStatus | null): void {
    addCosigningMetrics(this.#registry, status);
  }

  /** Shows how a node of a replicated log stands. */
  watchReplication(status: () => ReplicationStatus, appending: Appending): void {
    addReplicationMetrics(this.#registry, status, appending);
  }

  /** Shows the state of anchoring. */
  watchAnchoring(anchoring: Pick<Anchoring, "status" | "failures">): void {
    const ask = this.#perText(() => anchoring.status());
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
    deliveries: Readonly<Record<"delivered" | "failed" | "waiting" | "unread" | "behind" | "unhealthy", number>>,
  ): void {
    this.#asked(Gauge, "cairnlog_webhook_unhealthy", "Endpoints that are unhealthy.", () => deliveries.unhealthy);
    this.#asked(Gauge, "cairnlog_webhook_outbox", "Webhook deliveries that wait.", () => deliveries.waiting);
    this.#asked(Gauge, "cairnlog_webhook_behind", "Subscriptions that are behind the log.", () => deliveries.behind);
    this.#asked(
      Gauge,
      "cairnlog_webhook_unread",
      "Entries not yet matched with subscriptions.",
      () => deliveries.unread,
    );
    this.#asked(Counter, "cairnlog_webhook_delivered_total", "Webhook deliveries made.", () => deliveries.delivered);
    this.#asked(Counter, "cairnlog_webhook_failed_total", "Webhook attempts that failed.", () => deliveries.failed);
  }

  /** A metric without labels whose value is read whenever Prometheus asks. */
  #asked(Kind: typeof Gauge | typeof Counter, name: string, help: string, value: () => number): void {
    const collect = function (this: Gauge | Counter) {
      this.reset();
      this.inc(value());
    };
    new Kind({ name, help, registers: [this.#registry], collect });
  }

  /** `read`, which is called once for each text, although several metrics show a part of what it gives. */
  #perText<T>(read: () => T): () => T {
    let [of, value]: [number, T | undefined] = [-1, undefined];
    return () => {
      if (of !== this.#texts) [of, value] = [this.#texts, read()];
      return value as T;
    };
  }

  /** Stops measuring. */
  close(): void {
    this.#delay.close();
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
    await (wait > 0 ? sleep(wait) : turn());
    // A client that asks from now on may already know of newer events, so it waits for the next text.
    this.#next = null;
    this.#written = performance.now();
    this.#reports = await this.#ask();
    this.#texts++;
    const durations = requestDurations(this.#reports.map(({ figures }) => figures));
    return `${await this.#registry.metrics()}\n${durations}`;
  }
}
