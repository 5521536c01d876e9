/** Whether the disk has room for a batch. LMDB does not survive a page write that fails, so this is asked before each. */
import { statfsSync } from "node:fs";
import { CairnlogError } from "../../base/error.js";

/** Free bytes below which nothing is written: some batches of the largest size, with their rows, tiles and postings. */
export const DEFAULT_MIN_FREE_BYTES = 64 * 2 ** 20;
/** Seconds after which a refused client may try again. */
const RETRY_AFTER_S = 10;
/**
 * Milliseconds for which room that was found is relied on. One look takes 8 µs, and a batch asks twice: before it is formed,
 * and before it is written.
 */
const RELIED_ON_MS = 50;

/**
 * Share of the disk, above the bytes that must stay free, that is kept for the operator and for keys that an anchor reaches.
 * Strangers cannot stop them from writing.
 */
const KEPT_SHARE = 0.05;

/** A disk as processes without privileges see it. */
interface Disk {
  readonly bytes: number;
  readonly free: number;
}

/** Free bytes of the disk that holds `path`. @throws CairnlogError `storage-failed` */
export const freeBytes = (path: string): number => diskOf(path).free;

/** The disk that holds `path`. @throws CairnlogError `storage-failed` */
function diskOf(path: string): Disk {
  try {
    const { blocks, bavail, bsize } = statfsSync(path);
    return { bytes: blocks * bsize, free: bavail * bsize };
  } catch (cause) {
    throw new CairnlogError("storage-failed", `The disk of ${path} cannot be looked at.`, { cause });
  }
}

/** The error for a write that was refused because the disk has no room. Nothing of it was written. */
export const storageFull = (message: string, cause?: unknown): CairnlogError =>
  new CairnlogError("storage-full", message, { cause, retryAfter: RETRY_AFTER_S });

/** The room on the disk of a log, for all of its environments. Belongs to the thread that opened the store. */
export class Room {
  readonly #path: string;
  readonly #least: number;
  readonly #look: (path: string) => Disk;
  #isTight = false;
  #foundAt = Number.NEGATIVE_INFINITY;

  /**
   * @param path of the log
   * @param least free bytes that its disk must have
   * @param look at the disk
   */
  constructor(path: string, least: number, look = diskOf) {
    this.#path = path;
    this.#least = least;
    this.#look = look;
  }

  /** Whether the last `check` found room only for the operator and for keys that an anchor reaches. */
  get isTight(): boolean {
    return this.#isTight;
  }

  /** @throws CairnlogError `storage-full` if the disk has fewer free bytes than it must; `storage-failed` */
  check(): void {
    const now = performance.now();
    if (now < this.#foundAt + RELIED_ON_MS) return;
    const { bytes, free } = this.#look(this.#path);
    this.#isTight = free < this.#least + KEPT_SHARE * bytes;
    if (free < this.#least) {
      const [has, needs] = [free, this.#least].map((bytes) => Math.floor(bytes / 2 ** 20));
      throw storageFull(`Only ${has} MiB are free on the disk of the log, which needs ${needs} MiB to be written.`);
    }
    this.#foundAt = now;
  }
}
