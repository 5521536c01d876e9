/** Metrics of a witness for Prometheus. Labels are origins of the file of logs, so a client cannot make new ones. */
import { Counter, Gauge, Registry } from "prom-client";
import type { FrontFigures } from "../http/observing/measures.js";
import { addRequestMetrics, requestDurations } from "../http/observing/requestmetrics.js";
import { openFileLimit, openFiles } from "../process/machine.js";
import { VERSION } from "../process/version.js";
import type { Witness } from "./witness.js";

export class WitnessMetrics {
  readonly #registry = new Registry();
  readonly #requests: () => FrontFigures;
  readonly #cosigned: Counter<"origin">;
  readonly #forks: Counter<"origin">;
  /** Unix time of the newest cosignature since the start, by origin. */
  readonly #times = new Map<string, number>();

  /** @param requests what the HTTP server counts */
  constructor(witness: Witness, requests: () => FrontFigures, freeBytes: () => number) {
    this.#requests = requests;
    const registers = [this.#registry];
    const asked = (name: string, help: string, value: () => number) => {
      const collect = function (this: Gauge) {
        this.set(value());
      };
      new Gauge({ name, help, registers, collect });
    };
    new Gauge({ name: "cairnlog_info", help: "The version of the witness.", labelNames: ["version"], registers }).set(
      { version: VERSION },
      1,
    );
    addRequestMetrics(this.#registry, () => [requests()]);
    asked("cairnlog_witness_logs", "Logs in the file of logs.", () => witness.logs.size);
    asked("cairnlog_disk_free_bytes", "Bytes free on the disk of the witness.", freeBytes);
    asked("process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
    asked("process_open_fds", "Open files and sockets.", () => openFiles() ?? Number.NaN);
    asked("process_max_fds", "Files and sockets it may open.", () => openFileLimit() ?? Number.NaN);
    const labelNames = ["origin"] as const;
    this.#cosigned = new Counter({
      name: "cairnlog_witness_cosigned_total",
      help: "Checkpoints cosigned since the start.",
      labelNames,
      registers,
    });
    this.#forks = new Counter({
      name: "cairnlog_witness_forks_total",
      help: "Checkpoints refused because the log had signed another root for the same size, or has ended before.",
      labelNames,
      registers,
    });
    new Gauge({
      name: "cairnlog_witness_tree_size",
      help: "Size of the newest cosigned checkpoint.",
      labelNames,
      registers,
      collect() {
        this.reset();
        for (const origin of witness.logs.keys()) this.set({ origin }, witness.cosigned(origin)?.treeSize ?? 0);
      },
    });
    const times = this.#times;
    new Gauge({
      name: "cairnlog_witness_cosigned_seconds",
      help: "Unix time of the newest cosignature since the start.",
      labelNames,
      registers,
      collect() {
        this.reset();
        for (const [origin, time] of times) if (witness.logs.has(origin)) this.set({ origin }, time);
      },
    });
  }

  /** Counts a cosignature. */
  cosigned(origin: string): void {
    this.#cosigned.inc({ origin });
    this.#times.set(origin, Date.now() / 1000);
  }

  /** Counts a fork of a log, or what it signed behind its end. */
  forked(origin: string): void {
    this.#forks.inc({ origin });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The Prometheus text format. */
  async text(): Promise<string> {
    return `${await this.#registry.metrics()}\n${requestDurations([this.#requests()])}`;
  }
}
