/**
 * Blocks of the disk that are there before LMDB needs them. LMDB 3.5.6 does not survive a page write for which the disk has no
 * block (`health.ts`), and no look at free space can promise one: others fill the disk, too, and quotas and limits of file
 * sizes are not seen. So the file is made longer by our own writes, whose failure harms nothing, and LMDB writes into it.
 *
 * The zeros must never cover a page of LMDB's. So they are appended (`O_APPEND`): the system puts them behind the end that the
 * file has at that moment, also if LMDB has just made it longer. They may therefore be written while a transaction runs.
 * Node's thread pool writes them, at most `PIECE` bytes a write, so the writer's thread never waits for the disk here. A
 * transaction begins only when the file has room for all that it can need (`growth.ts`). Transactions of an environment pass
 * here one at a time, and the writer's lock keeps other processes out. If we crash here, the file has some zeros at its
 * end, which mean nothing to LMDB.
 *
 * File systems that never write in place (btrfs, ZFS) take new blocks all the same; there the check of free space
 * (`health.ts`) has to do.
 */
import { closeSync, constants, fstatSync, openSync, write } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Lock } from "../../base/lock.js";
import { type Environment, fileUse } from "./environment.js";
import { PageFile } from "./file/pagefile.js";
import type { Growth } from "./growth.js";
import { storageFull } from "./health.js";
import { DATA_FILE } from "./inspect.js";
import { OpeningGate } from "./opening-gate.js";

/** Fewest and most bytes that are kept ahead of need; in between an eighth of what is used. */
const LEAST_AHEAD = 512 * 1024;
const MOST_AHEAD = 16 * 2 ** 20;
/** Bytes of one write, and of what is written after a transaction: its flush writes them, too. */
const PIECE = 2 ** 20;
const ZEROS = Buffer.alloc(PIECE);

/** Writes to a file that was opened to append: some of the bytes, or all. */
type Append = (descriptor: number, bytes: Uint8Array) => Promise<unknown>;
const onPool = promisify(write);
const appendOnPool: Append = (descriptor, bytes) => onPool(descriptor, bytes, 0, bytes.length, null);

/** Bytes to keep ahead if so many are used. */
const keptBehind = (used: number): number => Math.min(MOST_AHEAD, Math.max(LEAST_AHEAD, Math.floor(used / 8)));

/** Belongs to the thread that writes the environment. */
export class Reserve {
  readonly #environment: Environment;
  readonly #file: string;
  readonly #append: Append;
  readonly #gate: OpeningGate;
  /** Null when it is closed: the system gives the number to another file then. */
  #descriptor: number | null;
  /** Length of the file, or less. */
  #reserved = 0;
  /** What LMDB has used, or more: what it had when it was last asked, and the bounds of the transactions since then. */
  #used = 0;
  /** Pages of LMDB's list of free pages, when it was last asked. */
  #freeList = 0;
  /** Held by the transaction that runs. */
  readonly #lock = new Lock();
  /** The write of zeros that runs. It never rejects. */
  #writing: Promise<unknown> | undefined;
  /** Length that the file gets ahead of need. */
  #wanted = 0;

  /** @param path directory of the environment */
  constructor(environment: Environment, path: string, append = appendOnPool) {
    this.#environment = environment;
    this.#file = join(path, DATA_FILE);
    this.#append = append;
    this.#gate = new OpeningGate(path);
    this.#descriptor = openSync(this.#file, constants.O_WRONLY | constants.O_APPEND);
  }

  /**
   * Runs a transaction that adds at most `growth` to the file, when those before it are through.
   * @throws CairnlogError `storage-full` if the disk does not give the bytes; then nothing was written
   */
  spend<T>(growth: Growth, transaction: () => Promise<T>): Promise<T> {
    return this.#lock.run(() => this.#spend(growth, transaction));
  }

  async #spend<T>(growth: Growth, transaction: () => Promise<T>): Promise<T> {
    let bytes = growth.loose(this.#freeList);
    if (this.#ahead(bytes) < keptBehind(this.#used) / 2) {
      this.#look();
      bytes = growth.loose(this.#freeList);
      if (this.#ahead(bytes) < 0) {
        bytes = Math.min(bytes, (await this.#tight(growth)) ?? bytes);
        if (this.#ahead(bytes) < 0) await this.#extend(this.#used + bytes);
      }
      // Only where `#used` is what LMDB has used: a sum of bounds is many times as much after some transactions.
      const kept = keptBehind(this.#used);
      if (this.#ahead(bytes) < kept / 2) this.#wanted = this.#used + bytes + kept;
    }
    this.#used += bytes;
    this.#fillAhead();
    return this.#gate.pass(transaction);
  }

  /** What would be left if so many bytes were added. */
  #ahead(bytes: number): number {
    return this.#reserved - this.#used - bytes;
  }

  /** Replaces what was estimated by what is, for about 30 µs. No transaction runs. */
  #look(): void {
    const { bytes, freeListPages } = fileUse(this.#environment);
    this.#used = bytes;
    this.#freeList = freeListPages;
    this.#measure();
  }

  #measure(): void {
    if (this.#descriptor !== null) this.#reserved = fstatSync(this.#descriptor).size;
  }

  /** Undefined if the file cannot be read. */
  async #tight(growth: Growth): Promise<number | undefined> {
    let file: PageFile | undefined;
    try {
      file = new PageFile(this.#file);
      return await growth.tight(file);
    } catch {
      return undefined;
    } finally {
      file?.close();
    }
  }

  async #extend(needed: number): Promise<void> {
    await this.#writing;
    const end = needed + Math.min(PIECE, keptBehind(needed));
    while (this.#descriptor !== null && this.#reserved < end) {
      const cause = await this.#write(this.#descriptor, end - this.#reserved);
      if (cause && this.#reserved < needed)
        throw storageFull(`The disk has no room for the log (${cause.code}).`, cause);
      if (cause) return;
    }
  }

  /** Begins to write a piece of what is wanted. A failure is for the transaction that needs the bytes. */
  #fillAhead(): void {
    const missing = this.#wanted - this.#reserved;
    if (missing > 0 && !this.#writing && this.#descriptor !== null) void this.#write(this.#descriptor, missing);
  }

  /** Appends zeros, at most a piece. @returns the reason if that failed */
  #write(descriptor: number, bytes: number): Promise<NodeJS.ErrnoException | undefined> {
    const written = this.#append(descriptor, ZEROS.subarray(0, bytes)).then(
      () => this.#written(),
      (error: NodeJS.ErrnoException) => this.#written(error),
    );
    this.#writing = written;
    return written;
  }

  #written(error?: NodeJS.ErrnoException): NodeJS.ErrnoException | undefined {
    this.#writing = undefined;
    this.#measure();
    return error;
  }

  /** Waits for the transactions, which get their room, and then for the write that runs. A second call does nothing. */
  async close(): Promise<void> {
    await this.#lock.settled();
    const descriptor = this.#descriptor;
    if (descriptor === null) return;
    this.#descriptor = null;
    await this.#writing;
    closeSync(descriptor);
    this.#gate.close();
  }
}
