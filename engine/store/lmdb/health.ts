/**
 * Whether the environments of a log may still be used by this process, and have room on their disk.
 *
 * A write that LMDB could not carry out leaves it in an unknown state: after a failed page write lmdb 3.5.6 may have printed a
 * message of up to 127 bytes into 100 (`engine/native/mend.ts`), and after a failed meta page every read finds an empty log. So the
 * first such failure ends all use: nothing more is read or written by this process, and a new process reads what is on disk. And
 * so it is asked before each batch whether the disk has room for it.
 */
import { statfsSync } from "node:fs";
import { CairnlogError } from "../../base/error.js";
import { tell } from "../../base/lock.js";

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

/** LMDB refuses these before it has written anything: the file cannot grow beyond its map, or a value has no place. */
const PLAIN_REFUSALS: ReadonlySet<unknown> = new Set([-30792 /* MDB_MAP_FULL */, -30781 /* MDB_BAD_VALSIZE */]);
const MAP_FULL = -30792;

/**
 * What a failed read is to those who asked. After a failed write LMDB gives no new reading transaction to any thread of the
 * process (MDB_PANIC), and threads that only read hear of the failure a moment later.
 */
export const failedRead = (cause: unknown): CairnlogError =>
  cause instanceof CairnlogError
    ? cause
    : new CairnlogError("storage-failed", "The data directory cannot be read.", { cause });

/** Belongs to the thread that opened the log's store. */
export class StoreHealth {
  #failure: CairnlogError | null = null;
  #isClosed = false;
  readonly #observers: ((failure: CairnlogError) => void)[] = [];

  /** Why nothing more is read or written; null while all is well. */
  get failure(): CairnlogError | null {
    return this.#failure;
  }

  /** Whether LMDB may be called. */
  get isUsable(): boolean {
    return !this.#failure && !this.#isClosed;
  }

  /** @throws CairnlogError `storage-failed` after a failure, `closed` after the end */
  check(): void {
    if (this.#failure) throw this.#failure;
    if (this.#isClosed) throw new CairnlogError("closed", "The log is closed.");
  }

  /** What `read` returns. @throws CairnlogError `storage-failed` if it fails, and after a failure */
  reading<T>(read: () => T): T {
    this.check();
    try {
      return read();
    } catch (cause) {
      throw failedRead(cause);
    }
  }

  /**
   * The rows that `read` returns, one at a time. Whoever takes them may do so over several turns, and the log be closed meanwhile:
   * LMDB ends the process if a range of a closed environment is gone on with, or given back.
   * @throws as `reading` does
   */
  *readingEach<T>(read: () => Iterable<T>): Iterable<T> {
    this.check();
    let rows: Iterator<T> | undefined;
    try {
      rows = read()[Symbol.iterator]();
      for (let next = rows.next(); !next.done; next = rows.next()) {
        yield next.value;
        this.check();
      }
      rows = undefined;
    } catch (cause) {
      throw failedRead(cause);
    } finally {
      if (this.isUsable) rows?.return?.();
    }
  }

  /** To be called before an environment is closed: from now on `check` says so, and does not blame the disk. */
  closed(): void {
    this.#isClosed = true;
  }

  /** Has `observer` called once, when the log can no longer be used by this process; at once if that is so already. */
  observe(observer: (failure: CairnlogError) => void): void {
    if (this.#failure) tell(observer, this.#failure);
    else this.#observers.push(observer);
  }

  /**
   * Judges why a transaction failed.
   * @returns what to throw: `storage-full` when the map is full, otherwise `error` for a plain refusal, and the failure that
   *   ends all use for everything else
   */
  judge(error: unknown): unknown {
    const { code } = error as { code?: unknown };
    if (code === MAP_FULL) return storageFull("The log has reached its largest size, and cannot grow.", error);
    if (PLAIN_REFUSALS.has(code)) return error;
    return this.end(
      new CairnlogError(
        "storage-failed",
        `A write to the log failed (${(error as Error).message}), so this process reads and writes no more of it. It must be started again.`,
        { cause: error },
      ),
    );
  }

  /** Ends all use because of `failure`. @returns the failure that ended it first */
  end(failure: CairnlogError): CairnlogError {
    if (!this.#failure) {
      this.#failure = failure;
      for (const observer of this.#observers) tell(observer, failure);
    }
    return this.#failure;
  }
}
