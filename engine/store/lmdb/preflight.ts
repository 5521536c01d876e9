/**
 * Meets what would keep LMDB from opening an environment, before LMDB does. When it cannot open one, lmdb 3.5.6 uses memory
 * that it has freed (`EnvWrap::openEnv`), and the process usually ends with SIGSEGV. So everything that it needs is tried by
 * our own code first, where a failure is an error with a sentence.
 *
 * If we crash here, a file with a name of its own stays in the folder. Nothing reads it.
 */
import {
  accessSync,
  closeSync,
  constants,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { inputError } from "../../base/error.js";
import { draftOf } from "../../base/files.js";
import { DATA_FILE } from "./inspect.js";
import { PRIVATE_FILE } from "./private.js";

export const LOCK_FILE = "lock.mdb";
/** Read transactions at one moment, of all threads and processes. A front end has two, and up to 32 for long queries. */
export const MAX_READERS = 4096;
/** Length of a lock file: LMDB's head, and a place for each read transaction. */
const LOCK_BYTES = 208 + 64 * MAX_READERS;
/** At least what LMDB writes into a new environment, the paths to its tables included. */
const NEW_BYTES = 512 * 1024;

/** Of a process, with all of its maps: half of the 128 TiB that x86-64 and arm64 have for programs. */
const MAX_ADDRESS_SPACE = 2 ** 46;

interface Preflight {
  /** Directory of the environment, which exists unless it is only read. */
  readonly path: string;
  readonly mapSize: number;
  readonly readOnly: boolean;
  /** Whether there is no data file yet, or one that holds nothing. */
  readonly isNew: boolean;
}

/**
 * Tries what LMDB will do to open an environment. Makes the lock file if it is missing.
 * @throws Error the file system's, or a sentence
 */
export function preflight({ path, mapSize, readOnly, isNew }: Preflight): void {
  requireAddressSpace(mapSize);
  if (isNew) withDraft(path, NEW_BYTES, () => {});
  else closeSync(openSync(join(path, DATA_FILE), readOnly ? "r" : "r+"));
  requireLockFile(path, readOnly);
}

/** Calls `then` with the path of a new file of `length` bytes, and removes the file. */
function withDraft(path: string, length: number, then: (draft: string) => void): void {
  const draft = draftOf(join(path, "preflight"));
  const file = openSync(draft, "wx", PRIVATE_FILE);
  try {
    for (let written = 0; written < length; ) written += writeSync(file, Buffer.alloc(length - written));
    then(draft);
  } finally {
    closeSync(file);
    rmSync(draft, { force: true });
  }
}

/**
 * The lock file is never opened here if it exists: closing it would drop the locks that this process may hold on it. A new
 * one has all of its blocks, because LMDB writes to it through a map, which on a full disk is a SIGBUS. It gets its name
 * when it is complete, so another process that starts at the same time has this file or its own.
 */
function requireLockFile(path: string, readOnly: boolean): void {
  const lock = join(path, LOCK_FILE);
  const found = statSync(lock, { throwIfNoEntry: false });
  if (found && !found.isFile()) throw new Error(`${lock} is not a file`);
  if (found) requireWritable(lock);
  else if (readOnly) requireWritable(path);
  else
    withDraft(path, LOCK_BYTES, (draft) => {
      try {
        linkSync(draft, lock);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
    });
}

/**
 * A reader, too, has its place in the lock file. On a file system that cannot be written LMDB does without, and lmdb 3.5.6 finds
 * no environment to share (`requireShared`); a writer that sees the files elsewhere would take the pages that are read.
 */
export function requireWritable(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EROFS") throw error;
    throw new Error(
      `${path} is on a file system that cannot be written, and who reads a log writes there, too: copy the data directory to another one`,
    );
  }
}

/**
 * LMDB reserves address space for the largest size of a file. Some systems limit it (`ulimit -v`), and everywhere it ends:
 * beyond about 102 TiB of maps lmdb 3.5.6 ends the process with SIGSEGV. The kernel counts the maps of the whole process,
 * whichever thread made them, and those that were closed no more.
 * @throws Error a sentence; CairnlogError `invalid-input`
 */
function requireAddressSpace(mapSize: number): void {
  // A program in JavaScript may give anything. Of less than nothing lmdb makes more than there is.
  if (typeof mapSize !== "number" || !(mapSize > 0)) throw inputError("`mapSize` takes bytes: a number above zero.");
  const used = /^VmSize:\s+(\d+) kB/m.exec(readSystemFile("/proc/self/status"))?.[1];
  if (used === undefined) return;
  const taken = Number(used) * 1024;
  if (taken + mapSize > MAX_ADDRESS_SPACE)
    throw new Error(
      `this process has too many logs open: ${tebibytes(taken)} TiB of address space are taken, ${tebibytes(mapSize)} TiB more are needed, and ${tebibytes(MAX_ADDRESS_SPACE)} TiB are the most. Close logs that you do not use`,
    );
  const limit = /^Max address space\s+(\d+)/m.exec(readSystemFile("/proc/self/limits"))?.[1];
  if (limit === undefined) return;
  const free = Number(limit) - taken;
  if (free > mapSize) return;
  const [has, needs] = [free, mapSize].map((bytes) => Math.floor(bytes / 2 ** 20));
  throw new Error(
    `this process may use only ${has} MiB more of address space (ulimit -v), and ${needs} MiB are needed`,
  );
}

const tebibytes = (bytes: number): number => Math.round((bytes / 2 ** 40) * 100) / 100;

/** Empty where the system has no such file: then no limit is known. */
function readSystemFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
