/**
 * The parent of a service: a small process that starts it, watches it, and ends as it does. A signal that ends the service
 * leaves no time for a sentence or a record; the parent gives both. It loads no native code and none of the service's modules.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import type { Duplex, Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { FAILED_EXIT_CODE, writeFailure } from "../../failure.js";
import { LineOutput, withoutBlocking } from "../../process/stderr.js";
import type { Report } from "./parent-connection.js";

// The end of a service by a signal: what its parent says about it, and what the next start reads.

/** How a service has ended. */
interface EndBySignal {
  readonly signal: NodeJS.Signals;
  /** Whether the kernel has killed processes because memory was short, while the service ran. */
  readonly isOutOfMemory: boolean;
  readonly lastWords: readonly string[];
}

const MEANINGS: Partial<Record<NodeJS.Signals, string>> = {
  SIGABRT: "its own code or a library gave up",
  SIGBUS: "a mapped file could not be read: a broken disk, or a file that was made shorter",
  SIGFPE: "a fault in native code",
  SIGKILL: "somebody has killed it",
  SIGSEGV: "a fault in native code",
};
const OUT_OF_MEMORY = "the kernel has killed a process because memory was short";

/** Lines that say where in a program something happened, and not what. */
const PLACE = /^\s*(?:\d+:\s|at\s|-+\s|<-+\s|\[\d+:)/;
const MAX_LINES = 12;
const MAX_CHARACTERS = 4096;

/** Keeps the last lines that somebody says. */
class LastWords {
  #text = "";

  add(text: string): void {
    this.#text = `${this.#text}${text}`.slice(-MAX_CHARACTERS);
  }

  get lines(): string[] {
    return this.#text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .slice(-MAX_LINES);
  }
}

/** Processes that the kernel has killed because memory was short, since the machine started; 0 where it does not count them. */
function oomKills(): number {
  try {
    return Number(/^oom_kill (\d+)$/m.exec(readFileSync("/proc/vmstat", "latin1"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** @param record what became of `failure.json`; null where none is kept, or nothing was written yet */
function sentenceOf({ signal, isOutOfMemory, lastWords }: EndBySignal, record: string | null): string {
  const meaning = isOutOfMemory ? OUT_OF_MEMORY : MEANINGS[signal];
  const last = lastWords.findLast((line) => !PLACE.test(line));
  return [
    `The service was ended by ${signal}${meaning === undefined ? "" : ` (${meaning})`}.`,
    ...(last === undefined ? [] : [`Its last words: ${last.trim()}`]),
    "What it had acknowledged is on disk.",
    ...(record === null ? [] : [record]),
  ].join(" ");
}

/**
 * Records the end, so that the next start checks the newest entries. A record that the service made itself stays.
 * @returns a sentence; null if the data directory does not exist, so that there is nothing to check
 */
function recordSignal(path: string, end: EndBySignal): string | null {
  const { signal, lastWords } = end;
  const record = { code: "ended-by-signal", message: sentenceOf(end, null), signal, last_words: lastWords };
  try {
    writeFailure(path, record, "wx");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    if (code !== "EEXIST") return `This cannot be recorded for the next start: ${message}.`;
  }
  return `The next start checks the newest entries (${path}).`;
}

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
  /** Whether a SIGHUP came that was not passed on yet. */
  #isHangUpDue = false;
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
    process.on("SIGHUP", () => {
      this.#isHangUpDue = true;
      this.#passHangUpOn();
    });
  }

  /** A service that has reported how it is to be stopped takes SIGHUP. Before that, it may end by it. */
  #passHangUpOn(): void {
    if (!this.#isHangUpDue || this.#reports.stopMs === undefined) return;
    this.#isHangUpDue = false;
    this.#child.kill("SIGHUP");
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
      this.#passHangUpOn();
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
