/**
 * The connection between a service and its parent process, as the service sees it. The parent holds the other end as long as
 * it lives.
 */
import { writeSync } from "node:fs";
import { Socket } from "node:net";

/** Numbers of the file descriptors that a parent gives to its service: the parent's own stderr, and the connection. */
export const PARENT_STDERR = 3;
const LIFELINE = 4;

/** What a service reports to its parent: one line of JSON each. */
export interface Report {
  /** Path of `failure.json`; null if the service keeps none. */
  readonly failureFile?: string | null;
  /** Milliseconds that a stop may take. Who has said it takes SIGHUP. */
  readonly stopMs?: number;
  /** What is being closed now. Its first report says that the service stops. */
  readonly closing?: string;
  /** The exit code, just before the exit. */
  readonly exit?: number;
}

let isHeld = false;

/** Whether this process is the child of a parent that watches it. */
export const hasParent = (): boolean => isHeld;

/**
 * Opens the connection. When the parent has ended, this process is killed: a supervisor that started the parent believes that
 * the service has ended, and may start another one. What was acknowledged is on disk.
 */
export function holdParentConnection(): void {
  isHeld = true;
  const socket = new Socket({ fd: LIFELINE });
  socket.on("error", () => {}).on("close", () => process.kill(process.pid, "SIGKILL"));
  socket.resume().unref();
}

/** Tells the parent something, at once: this thread may hang in the next moment. Does nothing without a parent. */
export function tellParent(what: Report): void {
  if (!isHeld) return;
  try {
    writeSync(LIFELINE, `${JSON.stringify(what)}\n`);
  } catch {
    // The parent has ended, or was stopped. Then it does not watch.
  }
}
