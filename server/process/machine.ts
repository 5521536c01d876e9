/** What the machine has left of what the service needs: files it may open. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { CairnlogError } from "../../engine/base/error.js";
import type { Logger } from "./logger.js";

/** Files kept for connections to webhook endpoints, whose owners can have all of them open at once. */
export const WEBHOOK_FILES = 128;
/** Files beside connections: the log, workers and calendars, and modules, many at once at the start. */
const OTHER_FILES = 160;

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
 * How many connections of clients are taken of the `wanted`: a process that is out of files cannot even refuse one, and spins.
 * @param toOthers files kept for connections to others
 * @throws CairnlogError `precondition-failed` when there are not enough files to run at all
 */
export function connectionsWithin(wanted: number, toOthers: number, logger: Pick<Logger, "warn">): number {
  const limit = openFileLimit();
  if (limit === null) return wanted;
  const possible = Math.min(wanted, limit - OTHER_FILES - toOthers);
  if (possible <= 0) throw tooFewFiles(limit);
  if (possible < wanted)
    logger.warn(
      { maxConnections: possible, openFiles: limit },
      "fewer connections than set: too few files may be open",
    );
  return possible;
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
