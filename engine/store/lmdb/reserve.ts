/**
 * Blocks of the disk that are there before LMDB needs them. LMDB 3.5.6 does not survive a page write for which the disk has no
 * block (`health.ts`), and no look at free space can promise one: others fill the disk, too, and quotas and limits of file
 * sizes are not seen. So the file is made longer by our own writes, whose failure harms nothing, and LMDB writes into it.
 *
 * The zeros must never cover a page of LMDB's. So they begin at the end of the file as it is, and they are written only while
 * no transaction runs: transactions of an environment pass here one at a time, and the writer's lock keeps other processes
 * out. If a transaction needs more than was estimated, LMDB makes the file longer by itself, as it would without us. If we
 * crash here, the file has some zeros at its end, which mean nothing to LMDB.
 *
 * File systems that never write in place (btrfs, ZFS) take new blocks all the same; there the check of free space
 * (`room.ts`) has to do.
 */
import { closeSync, fstatSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { storageFull } from "../room.js";
import { type Environment, fileBytes } from "./environment.js";
import { DATA_FILE } from "./inspect.js";

/** Smallest and largest piece by which a file grows; in between an eighth of what is used. */
const LEAST_STEP = 256 * 1024;
const LARGEST_STEP = 16 * 2 ** 20;
/** Bytes that a transaction of a few rows may take: the paths to its rows in each table, and LMDB's list of free pages. */
const BASE_BYTES = 64 * 4096;
/** Bytes that a row may take: its leaf, a split, and what is above. Large content counts apart. */
const ROW_BYTES = 3 * 4096;
const ZEROS = Buffer.alloc(2 ** 20);

/** Estimate, meant to be too high, of what a transaction that puts `rows` rows with `bytes` bytes of content adds to a file. */
export const growthOf = (rows: number, bytes: number): number => BASE_BYTES + ROW_BYTES * rows + 2 * bytes;

/** Belongs to the thread that writes the environment. */
export class Reserve {
  readonly #environment: Environment;
  /** Null when it is closed: the system gives the number to another file then. */
  #descriptor: number | null;
  /** Length of the file. */
  #reserved: number;
  /** What LMDB has used by our estimates, which are too high. */
  #used: number;
  /** Settles when the last transaction is through. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param path directory of the environment */
  constructor(environment: Environment, path: string) {
    this.#environment = environment;
    this.#descriptor = openSync(join(path, DATA_FILE), "r+");
    this.#reserved = fstatSync(this.#descriptor).size;
    this.#used = fileBytes(environment);
  }

  /**
   * Runs a transaction that adds about `growth` bytes to the file, when those before it are through.
   * @throws CairnlogError `storage-full` if the disk does not give the bytes; then nothing was written
   */
  spend<T>(growth: number, transaction: () => Promise<T>): Promise<T> {
    const spent = this.#last.then(() => {
      if (this.#used + growth > this.#reserved) {
        this.#used = fileBytes(this.#environment);
        this.#extend(this.#used + growth);
      }
      this.#used += growth;
      return transaction();
    });
    this.#last = spent.catch(() => {});
    return spent;
  }

  #extend(needed: number): void {
    if (this.#descriptor === null) return;
    this.#reserved = fstatSync(this.#descriptor).size;
    if (needed <= this.#reserved) return;
    const step = Math.min(LARGEST_STEP, Math.max(LEAST_STEP, Math.floor(this.#used / 8)));
    const end = needed + step;
    try {
      while (this.#reserved < end) {
        const length = Math.min(ZEROS.length, end - this.#reserved);
        this.#reserved += writeSync(this.#descriptor, ZEROS, 0, length, this.#reserved);
      }
    } catch (cause) {
      if (needed <= this.#reserved) return;
      throw storageFull(`The disk has no room for the log (${(cause as NodeJS.ErrnoException).code}).`, cause);
    }
  }

  /** A second call does nothing. */
  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }
}
