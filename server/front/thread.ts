/** One front end that has a thread of its own, as the writer's thread sees it. */
import { setTimeout as sleep } from "node:timers/promises";
import { MessageChannel, Worker } from "node:worker_threads";
import { CairnlogError } from "../../engine/base/error.js";
import type { FeedMessage } from "../../engine/log/follow/feed.js";
import type { LogWriter } from "../../engine/log/writer.js";
import type { FrontReport } from "../http/observing/metrics.js";
import type { Logger } from "../process/logger.js";
import type { Shared } from "./calls.js";
import { errorOf, type ToFront } from "./messages.js";
import type { FrontData } from "./worker.js";
import { type FrontWord, WriterSide } from "./writer-side.js";

const WORKER = new URL("./worker.js", import.meta.url);
/** Milliseconds for which a report is waited for. */
const REPORT_MS = 1_000;

/** Null if the thread does not tell. */
type Report = Omit<FrontReport, "thread"> | null;

interface Expecting {
  readonly resolve: (port: number) => void;
  readonly reject: (error: unknown) => void;
}

interface FrontThreadParts {
  readonly log: Pick<LogWriter, "enqueue">;
  readonly shared: Shared;
  readonly data: Omit<FrontData, "port">;
  /** Takes the lines of its log, if they do not go to stderr. */
  readonly logger: Logger;
  /** Called when there is something for `tell` to send. */
  readonly due: () => void;
  /** Called when its thread has thrown what nobody caught; then it ends. */
  readonly failed: (error: unknown) => void;
}

export class FrontThread {
  readonly name: string;
  readonly #writerSide: WriterSide;
  readonly #logger: Logger;
  /** What waits until the thread is open, until it listens, or until it has a new certificate: one of these at a time. */
  #expecting: Expecting | null = null;
  /** The report that was asked for, until it comes. All who ask meanwhile wait for the same one. */
  #report: Promise<Report> | null = null;
  #told: (report: Report) => void = () => {};
  #isListening = false;
  #hasEnded = false;
  /** Resolves when its thread has ended. */
  readonly ended: Promise<void>;
  /** Resolves when it can be told to listen. Rejects with what it says when it cannot start. */
  readonly opened: Promise<unknown>;

  constructor({ log, shared, data, logger, due, failed }: FrontThreadParts) {
    this.#logger = logger;
    this.name = `front-${data.number + 1}`;
    const { port1, port2 } = new MessageChannel();
    const worker = new Worker(WORKER, {
      workerData: { ...data, port: port2 } satisfies FrontData,
      transferList: [port2],
      name: this.name,
      execArgv: [],
    });
    this.#writerSide = new WriterSide({ port: port1, log, shared, due, heard: (word) => this.#heard(word) });
    this.opened = this.#expect();
    worker.on("error", (error) => {
      this.#expecting?.reject(error);
      failed(error);
    });
    this.ended = new Promise((resolve) => {
      worker.on("exit", () => {
        this.#writerSide.close();
        this.#hasEnded = true;
        this.#expecting?.reject(this.#ending());
        this.#told(null);
        resolve();
      });
    });
  }

  /** Whether clients can reach it. */
  get isListening(): boolean {
    return this.#isListening && !this.#hasEnded;
  }

  send(message: ToFront): void {
    this.#writerSide.send(message);
  }

  /** Sends what is new on the log, and how the commands of this front end have ended. */
  tell(feed: readonly FeedMessage[]): void {
    this.#writerSide.tell(feed);
  }

  /**
   * Has it listen; port 0 takes a free one.
   * @returns the port
   * @throws CairnlogError `precondition-failed` when the port is taken or the host is not this machine's; `worker-failed`
   */
  listen(host: string, port: number, isShared: boolean): Promise<number> {
    const listening = this.#expect();
    this.send({ kind: "listen", host, port, isShared });
    return listening;
  }

  /** Has it read certificate and key again. @throws CairnlogError as the transport does; `worker-failed` */
  async renewCertificate(): Promise<void> {
    const renewed = this.#expect();
    this.send({ kind: "renew" });
    await renewed;
  }

  /** What it tells of itself now; null if it does not answer in time. */
  async report(): Promise<Report> {
    if (this.#hasEnded) return null;
    this.#report ??= new Promise((resolve) => {
      this.#told = resolve;
      this.send({ kind: "report" });
    });
    const waiting = new AbortController();
    try {
      return await Promise.race([this.#report, sleep(REPORT_MS, null, { signal: waiting.signal })]);
    } finally {
      waiting.abort();
    }
  }

  #ending(): CairnlogError {
    return new CairnlogError("worker-failed", `The thread ${this.name} has ended.`);
  }

  #expect(): Promise<number> {
    return new Promise((resolve, reject) => {
      if (this.#hasEnded) reject(this.#ending());
      else this.#expecting = { resolve, reject };
    });
  }

  #heard(word: FrontWord): void {
    if (word.kind === "report") {
      this.#report = null;
      this.#told(word.report);
    } else if (word.kind === "log") this.#logger[word.level](word.details, word.sentence);
    else if (word.kind === "failed") this.#expecting?.reject(errorOf(word.fault));
    else if (word.kind === "renewed") this.#expecting?.resolve(0);
    else {
      this.#isListening = word.kind === "listening";
      this.#expecting?.resolve(word.kind === "listening" ? word.port : 0);
    }
  }
}
