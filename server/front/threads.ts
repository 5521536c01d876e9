/**
 * The front ends of a service that have threads of their own: starts them, feeds them what the writer tells, makes a new one
 * for one that died, and ends them. It belongs to the writer's thread.
 *
 * If a front end crashes: its clients see their connections close. What was acknowledged is on disk, and a command that was
 * handed over is on the log or not, as after any broken connection.
 */
import type { LogWriter } from "../../engine/log/writer.js";
import type { AllowedSigner } from "../../engine/verify/index.js";
import { type FrontFigures, pastOf } from "../http/observing/measures.js";
import type { FrontReport } from "../http/observing/metrics.js";
import { freePort } from "../http/transport/freeport.js";
import type { Logger } from "../process/logger.js";
import type { Shared } from "./calls.js";
import { FeedSender } from "./feed-sender.js";
import type { ToFront } from "./messages.js";
import { SharedState } from "./shared-state.js";
import { FrontThread } from "./thread.js";
import type { FrontData } from "./worker.js";

/** Milliseconds after which a front end that has given no sign counts as stuck. */
const STUCK_MS = 5_000;
/** Milliseconds before a front end that died is replaced, so that one that dies at its start does not use up a core. */
const REPLACE_MS = 500;
/** Milliseconds for which an exit of the process waits for all of them together. */
const EXIT_MS = 500;

interface FrontThreadsParts {
  readonly count: number;
  readonly log: LogWriter;
  readonly shared: Shared;
  /** What every front end is told at its start. */
  readonly data: Omit<FrontData, "number" | "sharedState" | "fed" | "port">;
  readonly logger: Logger;
}

interface Place {
  readonly host: string;
  readonly port: number;
}

export class FrontThreads {
  readonly #parts: FrontThreadsParts;
  #listed: FrontData["listed"];
  readonly #sharedState: SharedState;
  readonly #isShared: boolean;
  /** By number; null where one has died and is not replaced yet. */
  readonly #threads: (FrontThread | null)[];
  /** What each of them told last. */
  readonly #told = new Map<FrontThread, FrontReport>();
  /** What those that died had counted, so that no counter goes back. */
  #past: FrontFigures | null = null;
  #place: Place | null = null;
  readonly #replacing = new Set<NodeJS.Timeout>();
  #closing = false;
  readonly #feedSender: FeedSender;

  constructor(parts: FrontThreadsParts) {
    this.#parts = parts;
    this.#listed = parts.data.listed;
    this.#sharedState = SharedState.create(parts.count);
    this.#isShared = parts.count > 1;
    this.#threads = Array.from({ length: parts.count }, () => null);
    this.#feedSender = new FeedSender(this.#sharedState, () => this.#threads);
    parts.log.feed((message) => this.#feedSender.add(message));
    process.on("exit", this.#exiting);
  }

  /**
   * Starts all of them, and listens; port 0 takes a free one.
   * @returns the port
   * @throws CairnlogError `precondition-failed` when the port is taken or the host is not this machine's; what a front end
   *   says that cannot start
   */
  async listen(host: string, port: number): Promise<number> {
    const threads = this.#threads.map((_, number) => this.#start(number));
    await Promise.all(threads.map(({ opened }) => opened));
    let taken = this.#isShared ? await freePort(host, port) : port;
    for (const thread of threads) {
      taken = await thread.listen(host, taken, this.#isShared);
      // From now on one that dies is replaced, also while others begin.
      this.#place = { host, port: taken };
    }
    return taken;
  }

  /**
   * Has each of them read certificate and key again, one after the other, so that others answer meanwhile. One that ends
   * meanwhile is replaced by one that reads them.
   * @throws what the last one has said that cannot; the others have the new certificate all the same
   */
  async renewCertificate(): Promise<void> {
    let failure: { readonly error: unknown } | undefined;
    for (const thread of this.#threads)
      if (thread?.isListening)
        await thread.renewCertificate().catch((error: unknown) => {
          if (thread.isListening) failure = { error };
        });
    if (failure) throw failure.error;
  }

  /** Tells all of them, those to come included, who may write. */
  renewWriters(listed: readonly AllowedSigner[]): void {
    this.#listed = listed;
    // Before any of them is asked again, as with what is told of the log.
    this.#sharedState.count(1);
    this.#order({ kind: "writers", listed });
  }

  /** The front ends whose event loops have not turned for some seconds, and those that are gone or do not listen yet: `front-1`. */
  get stuck(): string[] {
    return this.#threads.flatMap((thread, number) =>
      !thread?.isListening || this.#sharedState.silence(number) > STUCK_MS ? [`front-${number + 1}`] : [],
    );
  }

  /** What each front end tells now. For one that does not answer, and for those that died, what they told last. */
  async reports(): Promise<FrontReport[]> {
    await Promise.all(
      this.#threads.map(async (thread) => {
        const report = await thread?.report();
        if (thread && report) this.#told.set(thread, { thread: thread.name, ...report });
      }),
    );
    const past = this.#past;
    return [...this.#told.values(), ...(past ? [{ thread: "past", figures: past, lateness: null }] : [])];
  }

  /** Has every front end answer what it accepted and close its connections. Resolves when their threads have ended. */
  async close(): Promise<void> {
    this.#closing = true;
    for (const timer of this.#replacing) clearTimeout(timer);
    this.#order({ kind: "close" });
    await Promise.all(this.#threads.map((thread) => thread?.ended));
    process.off("exit", this.#exiting);
  }

  /**
   * The process exits. A thread that still has an open uWebSockets.js app would abort it, so each closes its own now; one
   * that is stuck cannot, and the process ends by that.
   */
  readonly #exiting = (): void => {
    this.#order({ kind: "abandon" });
    const deadline = performance.now() + EXIT_MS;
    for (const number of this.#threads.keys())
      if (this.#threads[number]) this.#sharedState.waitForEnd(number, Math.max(0, deadline - performance.now()));
  };

  #order(message: ToFront): void {
    for (const thread of this.#threads) thread?.send(message);
  }

  #start(number: number): FrontThread {
    const { log, shared, logger } = this.#parts;
    const sharedState = this.#sharedState;
    sharedState.begin(number);
    const thread = new FrontThread({
      log,
      shared,
      logger,
      due: () => this.#feedSender.due(),
      data: {
        ...this.#parts.data,
        listed: this.#listed,
        number,
        sharedState: sharedState.buffer,
        fed: sharedState.fed,
      },
      failed: (error) => logger.error({ err: error, front: number + 1 }, "a front end failed"),
    });
    void thread.ended.then(() => this.#gone(thread, number));
    this.#threads[number] = thread;
    return thread;
  }

  #gone(thread: FrontThread, number: number): void {
    const told = this.#told.get(thread);
    this.#told.delete(thread);
    if (told) this.#past = pastOf(this.#past, told.figures);
    this.#threads[number] = null;
    this.#sharedState.begin(number);
    const place = this.#place;
    if (this.#closing || !place) return;
    this.#parts.logger.error({ front: number + 1 }, "a front end has ended, and is replaced");
    this.#replaceLater(number, place);
  }

  #replaceLater(number: number, place: Place): void {
    const timer = setTimeout(() => {
      this.#replacing.delete(timer);
      void this.#replace(number, place);
    }, REPLACE_MS);
    this.#replacing.add(timer);
  }

  /** One that cannot start ends, and is replaced in its turn. */
  async #replace(number: number, place: Place): Promise<void> {
    const { host, port } = place;
    let thread: FrontThread | undefined;
    try {
      thread = this.#start(number);
      await thread.opened;
      // It was told to close by then.
      if (this.#closing) return;
      await thread.listen(host, port, this.#isShared);
    } catch (error) {
      this.#parts.logger.error({ err: error, front: number + 1 }, "a front end cannot start");
      // One that is open and cannot listen lives on, and nobody would make another. Where the system gives no thread, none ends.
      if (thread) thread.send({ kind: "close" });
      else this.#replaceLater(number, place);
    }
  }
}
