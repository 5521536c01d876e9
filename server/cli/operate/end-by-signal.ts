/** The end of a service by a signal: what its parent says about it, and what the next start reads. */
import { readFileSync } from "node:fs";
import { writeFailure } from "../../failure.js";

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
  SIGKILL: "somebody has killed it",
  SIGSEGV: "a fault in native code",
};
const OUT_OF_MEMORY = "the kernel has killed a process because memory was short";

/** Lines that say where in a program something happened, and not what. */
const PLACE = /^\s*(?:\d+:\s|at\s|-+\s|<-+\s|\[\d+:)/;
const MAX_LINES = 12;
const MAX_CHARACTERS = 4096;

/** Keeps the last lines that somebody says. */
export class LastWords {
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
export function oomKills(): number {
  try {
    return Number(/^oom_kill (\d+)$/m.exec(readFileSync("/proc/vmstat", "latin1"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** @param record what became of `failure.json`; null where none is kept, or nothing was written yet */
export function sentenceOf({ signal, isOutOfMemory, lastWords }: EndBySignal, record: string | null): string {
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
export function recordSignal(path: string, end: EndBySignal): string | null {
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
