/**
 * The parent of a service: a small process that starts it, watches it, and ends as it does. A signal that ends the service
 * leaves no time for a sentence or a record; the parent gives both. It loads no native code and none of the service's modules.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import type { Duplex, Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { FAILED_EXIT_CODE } from "../../failure.js";
import { LineOutput, withoutBlocking } from "../../process/stderr.js";
import { LastWords, oomKills, recordSignal, sentenceOf } from "./end-by-signal.js";
import type { Report } from "./parent-connection.js";

const CHILD = fileURLToPath(new URL("../child.js", import.meta.url));
const STDERR = 2;
/** Signals that ask a service to end. One that ends by them has ended as it was told. */
const REQUESTS: readonly (NodeJS.Signals | null)[] = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * Runs a service as a child of this process.
 * @param argv the command line, from the name of the subcommand on
 * @returns the exit code: that of the service, or 74 if a signal has ended it. If the service was asked to end by a signal and
 *   has ended by it, so does this process
 */
export async function runWithParent(argv: readonly string[]): Promise<number> {
  try {
    return await new Watched(argv).ended;
  } catch (error) {
    // Too few files, processes, or memory.
    console.error(`cairnlog: The service's process cannot be started: ${(error as Error).message}.`);
    return 1;
  }
}

class Watched {
  readonly ended: Promise<number>;
  readonly #child: ChildProcess;
  readonly #stderr: LineOutput;
  readonly #words = new LastWords();
  readonly #oomKillsBefore = oomKills();
  /** All reports of the service, the newest of each kind. */
  #reports: Report = {};
  /** The first signal that asked this process to end the service. */
  #told: NodeJS.Signals | null = null;
  #isForced = false;
  #limit: NodeJS.Timeout | null = null;
  #isOverdue = false;

  constructor(argv: readonly string[]) {
    // Before there is a child, which would otherwise outlive this process for a moment.
    this.#watchSignals();
    this.#child = spawn(process.execPath, [...process.execArgv, CHILD, ...argv], {
      stdio: ["inherit", "inherit", "pipe", STDERR, "pipe"],
    });
    // After the start of the child, which makes streams block that it shares with this process.
    const stderr = withoutBlocking(STDERR);
    this.#stderr = new LineOutput(() => stderr);
    this.#watchStreams();
    this.ended = new Promise((resolve, reject) => {
      this.#child
        .on("error", reject)
        .on("close", (code, signal) => resolve(signal === null ? (code ?? 1) : this.#endedBy(signal)));
    });
  }

  /**
   * A signal may reach both processes: from a terminal, or from a supervisor that signals a whole group. The service takes the
   * second one for the first, so each is passed on. Only this process counts them.
   */
  #watchSignals(): void {
    const stop = (signal: NodeJS.Signals) => {
      this.#isForced = this.#told !== null;
      this.#told ??= signal;
      this.#child.kill(this.#isForced ? "SIGKILL" : signal);
      this.#limitStop();
    };
    process.on("SIGINT", stop).on("SIGTERM", stop);
    process.on("SIGHUP", (signal) => this.#child.kill(signal));
  }

  #watchStreams(): void {
    // Where no pipe can be made, there are neither streams nor a process, and `error` follows.
    const { stderr: words, stdio } = this.#child as { stderr?: Readable; stdio?: ChildProcess["stdio"] };
    if (!words || !stdio) return;
    const lifeline = stdio[4] as Duplex;
    words.setEncoding("utf8").on("data", (text: string) => {
      this.#words.add(text);
      this.#stderr.write(text);
    });
    // A child that was killed resets the connection.
    for (const stream of [words, lifeline]) stream.on("error", () => {});
    let rest = "";
    lifeline.setEncoding("utf8").on("data", (text: string) => {
      const lines = `${rest}${text}`.split("\n");
      rest = lines.pop()!;
      for (const line of lines) this.#reports = { ...this.#reports, ...(JSON.parse(line) as Report) };
      this.#limitStop();
    });
  }

  /** Kills a service that stops and does not end. Its own thread may hang, and its exit waits for all of its threads. */
  #limitStop(): void {
    const { stopMs, closing, exit } = this.#reports;
    const isStopping = this.#told !== null || closing !== undefined || exit !== undefined;
    if (!isStopping || stopMs === undefined || this.#limit) return;
    this.#limit = setTimeout(() => {
      this.#isOverdue = true;
      this.#child.kill("SIGKILL");
    }, stopMs).unref();
  }

  #endedBy(signal: NodeJS.Signals): number {
    if (this.#isForced) return endBy(this.#told!);
    // During its exit it no longer takes signals, and one that is passed on late ends it after all is closed.
    if (REQUESTS.includes(signal)) return this.#reports.exit ?? endBy(signal);
    if (this.#isOverdue) return this.#endedLate();
    const { failureFile = null } = this.#reports;
    const isOutOfMemory = signal === "SIGKILL" && oomKills() > this.#oomKillsBefore;
    const end = { signal, isOutOfMemory, lastWords: this.#words.lines };
    this.#say(sentenceOf(end, failureFile && recordSignal(failureFile, end)));
    return FAILED_EXIT_CODE;
  }

  #endedLate(): number {
    const { closing = "the service", exit = 1 } = this.#reports;
    const rest = exit === 0 ? "nothing that it had accepted is lost" : "writes that it had accepted may be undecided";
    this.#say(`the service was killed while this hung: ${closing}; ${rest}`);
    return exit;
  }

  #say(sentence: string): void {
    this.#stderr.write(`cairnlog: ${sentence}\n`);
  }
}

/** Ends this process by a signal. @returns the exit code for process 1 of a container, which no signal of its own ends */
function endBy(signal: NodeJS.Signals): number {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  return 128 + constants.signals[signal];
}
