/** Whether the disk has room for a batch. LMDB does not survive a page write that fails, so this is asked before each. */
import { statfsSync } from "node:fs";
import { CairnlogError } from "../error.js";

/** Free bytes below which nothing is written: some batches of the largest size, with their rows, tiles and postings. */
export const DEFAULT_MIN_FREE_BYTES = 64 * 2 ** 20;
/** Seconds after which a refused client may try again. */
const RETRY_AFTER_S = 10;

/** Free bytes of the disk that holds `path`, for processes without privileges. @throws CairnlogError `storage-failed` */
export function freeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch (cause) {
    throw new CairnlogError("storage-failed", `The disk of ${path} cannot be looked at.`, { cause });
  }
}

/** @throws CairnlogError `storage-full` if the disk that holds `path` has less than `least` free bytes */
export function checkRoom(path: string, least: number): void {
  const free = freeBytes(path);
  if (free >= least) return;
  const [has, needs] = [free, least].map((bytes) => Math.floor(bytes / 2 ** 20));
  const message = `Only ${has} MiB are free on the disk of the log, which needs ${needs} MiB to be written.`;
  throw new CairnlogError("storage-full", message, { retryAfter: RETRY_AFTER_S });
}
