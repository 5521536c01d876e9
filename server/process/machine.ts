/** What the machine has left of what the service needs: files it may open. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { CairnlogError } from "../../engine/base/error.js";

/** Files kept for connections to webhook endpoints, whose owners can have all of them open at once. */
export const WEBHOOK_FILES = 128;
/** Files beside the connections of clients: the log, workers and calendars, webhooks, and modules, many at once at the start. */
const OTHER_FILES = 160 + WEBHOOK_FILES;

/** How many files this process may have open; null where the system does not say. */
export function openFileLimit(): number | null {
  const limit = /^Max open files\s+(\d+)/m.exec(read("/proc/self/limits"))?.[1];
  return limit === undefined ? null : Number(limit);
}

/** Files that this process has open; null where the system does not say. */
export function openFiles(): number | null {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return null;
  }
}

/**
 * How many connections can be had of the `wanted`: a process that is out of files cannot even refuse one, and spins.
 * @returns 0 when there are not enough files to run at all
 */
export function possibleConnections(wanted: number, limit: number | null = openFileLimit()): number {
  return limit === null ? wanted : Math.max(0, Math.min(wanted, limit - OTHER_FILES));
}

/** The error of a process that may not open as many files as it needs. */
export const tooFewFiles = (limit: number | null, cause?: unknown): CairnlogError =>
  new CairnlogError(
    "precondition-failed",
    `This process may open ${limit} files, which is too few. Allow it 1024 or more (ulimit -n, LimitNOFILE).`,
    { cause },
  );

/** Whether others than its owner may read a file. */
export const isReadableByOthers = (path: string): boolean => (statSync(path).mode & 0o077) !== 0;

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
