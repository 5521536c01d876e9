/**
 * How long work lets others go first. One thread serves everybody, so work that takes some milliseconds is cut into pieces.
 * Of all pieces that wait, whoever they are for, only one runs in a turn: twelve clients at once wait for each other, not the
 * rest. A `setImmediate` elsewhere gathers what comes in one turn, to do it at once.
 */
import { readlinkSync } from "node:fs";
import { getPriority, setPriority } from "node:os";

const waiting: (() => void)[] = [];

/** Resolves when it is the caller's turn. A piece of work behind it should take a few milliseconds at most. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(next);
  });
}

/** What was resolved runs before the next turn: promises are served when this returns. */
function next(): void {
  waiting.shift()!();
  if (waiting.length) setImmediate(next);
}

/** Milliseconds of work between two turns. */
const PIECE_MS = 4;

/** Long work that is made of small steps: asks for a turn once it has worked for a few milliseconds. */
export class Pieces {
  #until = performance.now() + PIECE_MS;

  /** To be called between two steps. Null while there is nothing to wait for, so that short work makes no promise. */
  rest(): Promise<void> | null {
    if (performance.now() < this.#until) return null;
    return turn().then(() => {
      this.#until = performance.now() + PIECE_MS;
    });
  }
}

/** In the units of `nice`: a higher number is a lower priority. */
const STEPS = 10;
const LOWEST = 19;

/**
 * Lets all other threads go before the calling one and those that it starts, for the rest of their lives: only root could raise
 * their priority again. It counts from the priority of the process's first thread, so a thread may do this again. Where the
 * system does not let it, the thread works as before.
 */
export function yieldToOthers(): void {
  // Linux alone has threads with priorities, and says there which one this is.
  if (process.platform !== "linux") return;
  try {
    const thread = Number(readlinkSync("/proc/thread-self").split("/").at(-1));
    setPriority(thread, Math.min(getPriority(process.pid) + STEPS, LOWEST));
  } catch {
    // A sandbox that refuses the call, or hides /proc.
  }
}

/** Work that pauses at every `yield`. What is between two pauses should take well below a millisecond. */
export type Steps<T> = Generator<void, T, void>;
