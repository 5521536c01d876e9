/**
 * Blocks of the disk that are there before LMDB needs them. LMDB 3.5.6 does not survive a page write for which the disk has no
 * block (`health.ts`), and no look at free space can promise one: others fill the disk, too, and quotas and limits of file
 * sizes are not seen. So the file is made longer by our own writes, whose failure harms nothing, and LMDB writes into it.
 *
 * The zeros lie behind the last page that LMDB has used, and LMDB never gets further than what was reserved for it, so no
 * byte is written by both. If we crash here, the file has some zeros at its end, which mean nothing to LMDB.
 *
 * File systems that never write in place (btrfs, ZFS) take new blocks all the same; there the check of free space
 * (`room.ts`) has to do.
 */
import { closeSync, fstatSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { CairnlogError } from "../../error.js";
import { type Environment, fileBytes } from "./environment.js";

/** Smallest and largest piece by which a file grows; in between an eighth of what is used. */
const LEAST_STEP = 256 * 1024;
const LARGEST_STEP = 16 * 2 ** 20;
/** Pages that a transaction of a few rows may take: the paths to its rows in each table, and LMDB's list of free pages. */
const BASE_BYTES = 64 * 4096;
/** Bytes that a row may take: its leaf, a split, and what is above. */
const ROW_BYTES = 3 * 4096;
const RETRY_AFTER_S = 10;
const ZEROS = Buffer.alloc(2 ** 20);

/** Upper bound of what a transaction that puts `rows` rows with `bytes` bytes of content adds to a file. */
export const growthOf = (rows: number, bytes: number): number => BASE_BYTES + ROW_BYTES * rows + 2 * bytes;

/** Belongs to the thread that writes the environment. */
export class Reserve {
  readonly #environment: Environment;
  /** Null when it is closed: the system gives the number to another file then. */
  #descriptor: number | null;
  /** Length of the file. */
  #reserved: number;
  /** Upper bound of the bytes that LMDB has used. */
  #used: number;
  /** Bytes promised to transactions that run. */
  #promised = 0;

  /** @param path directory of the environment */
  constructor(environment: Environment, path: string) {
    this.#environment = environment;
    this.#descriptor = openSync(join(path, "data.mdb"), "r+");
    this.#reserved = fstatSync(this.#descriptor).size;
    this.#used = fileBytes(environment);
  }

  /**
   * Runs a transaction that adds at most `growth` bytes to the file.
   * @throws CairnlogError `storage-full` if the disk does not give the bytes; then nothing was written
   */
  async spend<T>(growth: number, transaction: () => Promise<T>): Promise<T> {
    if (this.#used + this.#promised + growth > this.#reserved) {
      // The bound is far above what is used: LMDB uses free pages first.
      this.#used = fileBytes(this.#environment);
      this.#extend(this.#used + this.#promised + growth);
    }
    this.#promised += growth;
    try {
      return await transaction();
    } finally {
      this.#promised -= growth;
      this.#used += growth;
    }
  }

  #extend(needed: number): void {
    if (needed <= this.#reserved || this.#descriptor === null) return;
    const step = Math.min(LARGEST_STEP, Math.max(LEAST_STEP, Math.floor(this.#used / 8)));
    const end = needed + step;
    try {
      while (this.#reserved < end) {
        const length = Math.min(ZEROS.length, end - this.#reserved);
        this.#reserved += writeSync(this.#descriptor, ZEROS, 0, length, this.#reserved);
      }
    } catch (cause) {
      if (needed <= this.#reserved) return;
      const { code } = cause as NodeJS.ErrnoException;
      const message = `The disk has no room for the log (${code}).`;
      throw new CairnlogError("storage-full", message, { cause, retryAfter: RETRY_AFTER_S });
    }
  }

  /** A second call does nothing. */
  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }
}
