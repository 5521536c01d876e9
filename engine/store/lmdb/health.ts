/**
 * Whether the environments of a log may still be used by this process.
 *
 * A write that LMDB could not carry out leaves it in an unknown state: after a failed page write lmdb 3.5.6 may have printed a
 * message of up to 127 bytes into 100 (`engine/native/mend.ts`), and after a failed meta page every read finds an empty log. So the first such
 * failure ends all use: nothing more is read or written by this process, and a new process reads what is on disk.
 */
import { CairnlogError } from "../../base/error.js";
import { storageFull } from "./room.js";

/** LMDB refuses these before it has written anything: the file cannot grow beyond its map, or a value has no place. */
const PLAIN_REFUSALS: ReadonlySet<unknown> = new Set([-30792 /* MDB_MAP_FULL */, -30781 /* MDB_BAD_VALSIZE */]);
const MAP_FULL = -30792;

/**
 * What a failed read is to those who asked. After a failed write LMDB gives no new reading transaction to any thread of the
 * process (MDB_PANIC), and threads that only read hear of the failure a moment later.
 */
export const unreadable = (cause: unknown): CairnlogError =>
  cause instanceof CairnlogError
    ? cause
    : new CairnlogError("storage-failed", "The data directory cannot be read.", { cause });

/** Belongs to the thread that opened the log's store. */
export class Health {
  #failure: CairnlogError | null = null;
  readonly #observers: ((failure: CairnlogError) => void)[] = [];

  /** Why nothing more is read or written; null while all is well. */
  get failure(): CairnlogError | null {
    return this.#failure;
  }

  /** @throws CairnlogError `storage-failed` after a failure */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  /** What `read` returns. @throws CairnlogError `storage-failed` if it fails, and after a failure */
  reading<T>(read: () => T): T {
    this.check();
    try {
      return read();
    } catch (cause) {
      throw unreadable(cause);
    }
  }

  /** The rows that `read` returns, one at a time. @throws as `reading` does */
  *readingEach<T>(read: () => Iterable<T>): Iterable<T> {
    this.check();
    try {
      yield* read();
    } catch (cause) {
      throw unreadable(cause);
    }
  }

  /** Has `observer` called once, when the log can no longer be used by this process; at once if that is so already. */
  observe(observer: (failure: CairnlogError) => void): void {
    if (this.#failure) observer(this.#failure);
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
      for (const observer of this.#observers) observer(failure);
    }
    return this.#failure;
  }
}
