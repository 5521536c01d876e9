/**
 * Keeps other processes from opening an environment while a transaction of its writer runs.
 *
 * All processes of an environment share the number of its newest commit, in LMDB's lock file. Whoever opens it with lmdb 3.5.6
 * sets this number to the one that it has read from the file a moment before (`mdb_env_open2`). If commits came in between,
 * the number is too old. Readers then miss what was acknowledged, and the writer's next transaction begins from a state that
 * was replaced: with one commit in between its condition fails, with two its pages are gone (MDB_BAD_TXN).
 *
 * So whoever opens first puts a file beside the environment and waits until no transaction runs; the writer gives a sign before
 * its transactions, and begins none while that file is there. Each of both looks for the other's sign after giving its own, so
 * at least one of them sees the other. The writer takes its sign back when it has been idle for a moment, not after every
 * transaction: then a busy log pays for one look at a file, and an opening waits a moment longer.
 *
 * If either crashes here, its sign stays. It counts for `DEAD_MS` if its process is gone, and for `PATIENCE_MS` in any case:
 * then appends go on, or the environment is opened, as if it were not there. A process of another container cannot be seen and
 * is taken for gone; an opening takes some 20 ms.
 */
import {
  accessSync,
  closeSync,
  constants,
  linkSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { draftOf, dropDraft, giveToOwner, isPresent } from "../../base/files.js";
import { container, hasEnded } from "../../base/process.js";
import { PRIVATE_FILE } from "./private.js";

/** Holds the numbers of the process whose transactions may run, or 0, and of its container, which earlier versions leave out. */
const RUNNING_FILE = "running";
/** Is there while a process opens the environment, and holds its number. */
const OPENING_FILE = "opening";
/** Milliseconds for which a sign counts, if its process is there and if it is not. */
const PATIENCE_MS = 5_000;
const DEAD_MS = 1_000;
const LOOK_MS = 1;
/** Milliseconds after its last transaction in which a writer takes its sign back. */
const IDLE_MS = 5;
const SIGN_BYTES = 8;

/** The writer's side, for one environment. Its transactions pass one at a time. It belongs to the thread that writes. */
export class OpeningGate {
  readonly #opening: string;
  readonly #running: number;
  readonly #own = Buffer.alloc(SIGN_BYTES);
  #isMarked = false;
  #isRunning = false;
  readonly #idle: NodeJS.Timeout;

  /** @param path directory of the environment */
  constructor(path: string) {
    this.#opening = join(path, OPENING_FILE);
    const file = join(path, RUNNING_FILE);
    this.#running = openSync(file, constants.O_RDWR | constants.O_CREAT, PRIVATE_FILE);
    giveToOwner(file);
    this.#own.writeUInt32LE(process.pid);
    this.#own.writeUInt32LE(container(), 4);
    // What a writer that was killed has left.
    this.#write(NOBODY);
    this.#idle = setTimeout(() => this.#isRunning || this.#rest(), IDLE_MS).unref();
  }

  /** Runs a transaction while nobody opens the environment. */
  async pass<T>(transaction: () => Promise<T>): Promise<T> {
    this.#isRunning = true;
    try {
      this.#sign(true);
      for (let hasExpired: (() => boolean) | undefined; isPresent(this.#opening); ) {
        hasExpired ??= expiryOf(this.#opening);
        if (hasExpired()) rmSync(this.#opening, { force: true });
        else {
          this.#sign(false);
          await sleep(LOOK_MS);
        }
        this.#sign(true);
      }
      return await transaction();
    } finally {
      this.#isRunning = false;
      this.#idle.refresh();
    }
  }

  /**
   * Takes the sign back where nobody waits for it. If the disk refuses, nothing is lost: who opens the environment waits until
   * the sign has expired, and it is taken back after the next transaction.
   */
  #rest(): void {
    try {
      this.#sign(false);
    } catch {}
  }

  /** Gives the sign, or takes it back. */
  #sign(isMarked: boolean): void {
    if (isMarked === this.#isMarked) return;
    this.#write(isMarked ? this.#own : NOBODY);
    this.#isMarked = isMarked;
  }

  #write(sign: Buffer): void {
    writeSync(this.#running, sign, 0, SIGN_BYTES, 0);
  }

  close(): void {
    clearTimeout(this.#idle);
    this.#rest();
    closeSync(this.#running);
  }
}

const NOBODY = Buffer.alloc(SIGN_BYTES);

/**
 * What `open` returns, which opens the environment in the directory `path`. No transaction of another process runs meanwhile.
 * Blocks the thread. In the process of the writer nothing is waited for: its threads share one environment, which is open.
 * @throws what `open` throws
 */
export function openAtGate<T>(path: string, open: () => T): T {
  const opening = join(path, OPENING_FILE);
  if (!beginOpening(path, opening)) return open();
  try {
    const began = performance.now();
    for (;;) {
      const { pid, isOwn } = runningIn(join(path, RUNNING_FILE));
      // Who has the number of this process and is another one is in another container.
      const patience = pid === process.pid ? DEAD_MS : patienceWith(pid);
      if (pid === 0 || isOwn || performance.now() - began > patience) break;
      pause();
    }
    return open();
  } finally {
    rmSync(opening, { force: true });
  }
}

/** @returns false where nothing can be written: there is no writer either */
function beginOpening(path: string, opening: string): boolean {
  const draft = draftOf(opening);
  try {
    accessSync(path, constants.W_OK);
    writeFileSync(draft, `${process.pid}`, { mode: PRIVATE_FILE });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code!;
    if (["EACCES", "ENOENT"].includes(code)) return false;
    // An empty file needs no room. It names no process, so it counts as if that were there.
    if (!(["ENOSPC", "EDQUOT"].includes(code) && isPresent(draft))) {
      dropDraft(draft);
      throw error;
    }
  }
  const hasExpired = expiryOf(opening);
  try {
    for (;;) {
      try {
        linkSync(draft, opening);
        return true;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      if (hasExpired()) rmSync(opening, { force: true });
      else pause();
    }
  } finally {
    rmSync(draft, { force: true });
  }
}

/** The process whose transaction runs, and whether it is this one; 0 for none, also if no version that has this file was here. */
function runningIn(file: string): { readonly pid: number; readonly isOwn: boolean } {
  if (!isPresent(file)) return { pid: 0, isOwn: false };
  const descriptor = openSync(file, "r");
  try {
    const sign = Buffer.alloc(SIGN_BYTES);
    readSync(descriptor, sign, 0, SIGN_BYTES, 0);
    const [pid, of] = [sign.readUInt32LE(), sign.readUInt32LE(4)];
    return { pid, isOwn: pid === process.pid && (of === 0 || of === container()) };
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Says whether an opening has lasted too long to be waited for: by the time of its file, or by the time since it was first seen
 * here, because the clock may have been set back since.
 */
function expiryOf(opening: string): () => boolean {
  let seen = "";
  let since = 0;
  return () => {
    const found = statSync(opening, { throwIfNoEntry: false });
    if (!found) return false;
    const sign = `${found.ino} ${found.mtimeMs}`;
    if (sign !== seen) [seen, since] = [sign, performance.now()];
    return Math.max(Date.now() - found.mtimeMs, performance.now() - since) > patienceWith(pidIn(opening));
  };
}

/** 0 if the file is empty, or has gone meanwhile. */
function pidIn(opening: string): number {
  try {
    return Number(readFileSync(opening, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}

const patienceWith = (pid: number): number => (hasEnded(pid) ? DEAD_MS : PATIENCE_MS);

const nothing = new Int32Array(new SharedArrayBuffer(4));
/** Blocks this thread for a moment. */
const pause = (): unknown => Atomics.wait(nothing, 0, 0, LOOK_MS);
