/** What a process does when its output cannot be written, which Node's console ignores, and when its terminal is closed. */

import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { isatty } from "node:tty";
import { systemSentence } from "./system-error.js";

/** As of a process that SIGPIPE ended. */
const PIPE_CLOSED = 141;

/**
 * Makes the process end with 1 and a sentence if its output could not be written. If the reader went away, as `head` does when
 * it has enough, it ends at once and quietly. A command that ends in order at an interrupt does so in both cases.
 */
export function watchOutput(): void {
  let failure: NodeJS.ErrnoException | null = null;
  // Nobody is left who could be told.
  process.stderr.on("error", () => {});
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    const isFirst = failure === null;
    failure ??= error;
    if (isFirst && process.listenerCount("SIGINT") > 0) process.emit("SIGINT", "SIGINT");
    else if (failure.code === "EPIPE") process.exit();
  });
  process.on("exit", (code) => {
    if (failure === null) return;
    process.exitCode = failure.code === "EPIPE" ? PIPE_CLOSED : code || 1;
    if (failure.code === "EPIPE") return;
    console.error(`cairnlog: ${systemSentence(failure, "The output")}`);
  });
}

const STDOUT = 1;

/**
 * Has a service outlive SIGHUP, which asks it to read files again, from before it has read any. On a terminal the signal says that
 * this is closed.
 */
export function outliveHangUps(): void {
  if (!isatty(STDOUT)) process.on("SIGHUP", () => {});
}

/**
 * Writes a text to stdout.
 * @param otherwise called if it was not written, before the process ends for that
 * @returns whether it was written
 */
export const written = (text: string, otherwise: () => void): Promise<boolean> =>
  new Promise((resolve) => {
    process.stdout.write(text, (error) => {
      if (error) otherwise();
      resolve(!error);
    });
  });

// What a process does about a terminal that was closed while it ran.

const STANDARD = [0, 1, 2] as const;

/**
 * Replaces standard streams whose terminal was closed, when the process exits. At its exit Node restores the settings of each
 * terminal that it was started on, and aborts when it cannot. It leaves out what is another file by then.
 */
export function leaveClosedTerminals(): void {
  const terminals = STANDARD.filter((fd) => isatty(fd));
  if (terminals.length === 0) return;
  process.on("exit", () => {
    // `open` takes the lowest number that is free, which is the one that was just closed.
    for (const fd of terminals)
      if (!isatty(fd)) {
        closeSync(fd);
        openSync(devNull, "r+");
      }
  });
}
