/** Opens the LMDB environments of a log, and waits for their transactions. */
import { truncateSync } from "node:fs";
import { join } from "node:path";
import { threadId } from "node:worker_threads";
import type { Database, RootDatabase, Transaction } from "lmdb";
import { CairnlogError } from "../../base/error.js";
import { flushFile, flushFolders, giveToOwner, isPresent } from "../../base/files.js";
import { Encoder, open } from "../../native/lmdb.js";
import type { Key } from "../schema/schema.js";
import type { StoreHealth } from "./health.js";
import { DATA_FILE, requireSound } from "./inspect.js";
import { openAtGate } from "./opening-gate.js";
import { LOCK_FILE, MAX_READERS, preflight } from "./preflight.js";
import { makePrivateFolder, PRIVATE_FILE } from "./private.js";

/** Its types do not know that lmdb takes the mode of the files it makes. */
export const FILE_MODE = { permissionsMode: PRIVATE_FILE } as object;

/** Rows are encoded by this package's own msgpackr, not by lmdb's copy: the encoded bytes are our file format. */
export const RECORDS = { encoder: { Encoder } } as object;

/** Gives the files of an environment that was opened to the owner of its directory, if root has made them. */
export function giveFilesToOwner(path: string): void {
  for (const file of [DATA_FILE, LOCK_FILE].map((name) => join(path, name))) if (isPresent(file)) giveToOwner(file);
}

interface EnvironmentOptions {
  /** Directory. */
  readonly path: string;
  readonly mapSize: number;
  readonly maxDbs: number;
  readonly readOnly: boolean;
  /** Writes are not flushed, so a crash may leave the files in any state. */
  readonly noSync: boolean;
  /** What to do if the file is damaged: a sentence. Null if the caller has looked at the file itself. */
  readonly advice: string | null;
  /** Whether there is other data that was written only after this environment was on disk. */
  readonly mustExist: boolean;
}

export type Environment = RootDatabase<unknown, Key>;

/**
 * All our writes are inside our own transactions. `eventTurnBatching` is off because the transactions that lmdb makes
 * for one turn have a promise that we cannot handle. Without `overlappingSync` a transaction is visible only after it
 * is on disk.
 *
 * If we crash while we make the environment: nothing is written to it before its file and the folders above it are on
 * disk, so an incomplete file holds nothing and is made anew.
 * @throws CairnlogError `corrupt-log` if the file is damaged or missing; `storage-failed` if it cannot be read;
 *   `not-found` if it does not exist and is only to be read
 */
export function openEnvironment(options: EnvironmentOptions): Environment {
  const { path, mapSize, maxDbs, readOnly, noSync } = options;
  const file = join(path, DATA_FILE);
  const state = options.advice === null ? "sound" : requireSound(path, options.advice);
  if (state !== "sound" && options.mustExist)
    throw new CairnlogError(
      "corrupt-log",
      `${file} ${state === "absent" ? "is missing" : "holds nothing"}. ${options.advice}`,
    );
  if (state !== "sound" && readOnly)
    throw new CairnlogError("not-found", `There is nothing to read in ${path} yet: start the service once.`);
  if (!readOnly) makePrivateFolder(path);
  // Zeros are not an empty file to LMDB.
  if (state === "unborn") truncateSync(file);
  preflight({ path, mapSize, readOnly, isNew: state === "unborn" || !isPresent(file) });
  const openHandle = () =>
    open<unknown, Key>({
      path,
      mapSize,
      maxDbs,
      maxReaders: MAX_READERS,
      readOnly,
      noSync,
      ...FILE_MODE,
      noSubdir: false,
      overlappingSync: false,
      eventTurnBatching: false,
    });
  // Whoever opens to write has the writer's lock: no transaction runs, though a writer that was killed may have left its sign.
  const environment = readOnly ? openAtGate(path, openHandle) : openHandle();
  giveFilesToOwner(path);
  requireShared(environment, openHandle, file);
  // Takes this process's place among the readers now: a failure of that is one of opening.
  environment.useReadTransaction().done();
  if (state === "sound") return environment;
  flushFile(file);
  flushFolders(path);
  return environment;
}

/**
 * Opens tables of `environment` by `open`. Those that are not there are made in one transaction: made one by one, each would
 * wait for the disk, and a crash could leave some of them.
 */
export function openTables<T>(
  { environment, readOnly }: { environment: Environment; readOnly: boolean },
  open: () => T,
): T {
  return readOnly ? open() : environment.transactionSync(open);
}

/** Locks that lmdb keeps in the memory of an environment, for all handles of the process. Its types leave them out. */
interface Locks {
  tryLock(id: string): boolean;
  hasLock(id: string): boolean;
  unlock(id: string): boolean;
}

let handles = 0;

/**
 * Makes sure that later handles of this process, in whatever thread, will use the same LMDB environment as `environment`. Two
 * environments of one file in a process give their readers the same places in the lock file, and then reads answer with
 * what was, or with nothing. lmdb 3.5.6 finds the environment of a file by opening the file once more; when that call fails
 * (EINTR, EMFILE, EIO), it says nothing, and the environment is one that no other handle finds. A second handle shows it.
 *
 * It takes 1 ms of CPU (20 openings of an empty environment, Node 20).
 * @throws CairnlogError `storage-failed`. `environment` stays open then: closing an environment frees the places of all readers
 *   of this process in the lock file, also those of other environments
 */
function requireShared(environment: Environment, openHandle: () => Environment, file: string): void {
  const own = environment as unknown as Locks;
  // No other thread has this one.
  const mark = `handle ${threadId}.${++handles}`;
  own.tryLock(mark);
  const second = openHandle();
  const isShared = (second as unknown as Locks).hasLock(mark);
  // An environment that it shares stays open. One of its own has no readers, and neither has `environment` yet.
  unheard(second.close());
  own.unlock(mark);
  if (!isShared)
    throw new CairnlogError(
      "storage-failed",
      `${file} was opened, but threads of this process cannot share it. Nothing was read or written. Try again.`,
    );
}

/**
 * Ignores the promise of a single write in a transaction. Only the transaction's own promise is awaited. When the
 * transaction fails, for example on a full disk, the promises of its writes are rejected too, and an unhandled
 * rejection would end the process.
 */
export function unheard(write: Promise<unknown>): void {
  write.catch(() => {});
}

/**
 * The result of a transaction. lmdb puts the reason for a failure into a further promise inside the error.
 * @throws what `health` makes of the reason
 */
export async function settled<T>(transaction: Promise<T>, health: StoreHealth): Promise<T> {
  try {
    return await transaction;
  } catch (error) {
    const { commitError = error } = error as { commitError?: unknown };
    const reason = await Promise.resolve(commitError).catch((inner: unknown) => inner);
    throw health.judge(reason);
  }
}

/** Runs all writes of `write` as one transaction; resolves when they are on disk. @throws as `settled` does */
export async function transact(environment: Environment, health: StoreHealth, write: () => void): Promise<void> {
  health.check();
  await settled(environment.batch(write), health);
  await settled(environment.flushed, health);
}

interface TreeStats {
  readonly treeBranchPageCount: number;
  readonly treeLeafPageCount: number;
  readonly overflowPages: number;
}

/** Size of an environment's file in bytes. */
export const fileBytes = (environment: Environment): number => fileUse(environment).bytes;

/** Size of an environment's file, and the pages of it that hold LMDB's list of free pages. */
export function fileUse(environment: Environment): { readonly bytes: number; readonly freeListPages: number } {
  const stats = environment.getStats() as { lastPageNumber: number; pageSize: number; free: TreeStats };
  const { treeBranchPageCount, treeLeafPageCount, overflowPages } = stats.free;
  return {
    bytes: (stats.lastPageNumber + 1) * stats.pageSize,
    freeListPages: treeBranchPageCount + treeLeafPageCount + overflowPages,
  };
}

/** A line of LMDB's list of readers that has a transaction open: process, thread, number of the last commit that it sees. */
const READER = /^\s*\d+\s+\S+\s+(\d+)\s*$/gm;

/** Commits since the moment that the oldest open reader of any thread and process sees; 0 without one. It takes 30 µs. */
export function oldestReaderOf(environment: Environment): number {
  const { lastTxnId } = environment.getStats() as { lastTxnId: number };
  const seen = [...environment.readerList().matchAll(READER)].map(([, commit]) => Number(commit));
  return seen.reduce((oldest, commit) => Math.max(oldest, lastTxnId - commit), 0);
}

/** A row without a copy: in a buffer that lmdb reuses, or directly in the mapped file. Read it before the next call. */
export function view<K extends Key>(
  table: Database<Buffer, K>,
  key: K,
  at: { readonly transaction?: Transaction },
): Buffer | undefined {
  // lmdb's types do not declare these options.
  const read = table.getBinaryFast as Database<Buffer, K>["get"];
  const bytes = read.call(table, key, at) as Uint8Array | undefined;
  return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
