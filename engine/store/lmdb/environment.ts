/** What a log's environments have in common: how they are opened, and how a transaction of theirs is waited for. */
import { type Database, open, type RootDatabase, type Transaction } from "lmdb";
import { Encoder } from "msgpackr";
import { makePrivateFolder, PRIVATE_FILE } from "../private.js";
import type { Key } from "../schema.js";

/** Its types do not know that lmdb takes the mode of the files it makes. */
export const FILE_MODE = { permissionsMode: PRIVATE_FILE } as object;

/** Rows are encoded by the msgpackr of this package, whichever one lmdb brings along: its bytes are our file format. */
export const RECORDS = { encoder: { Encoder } } as object;

export interface EnvironmentOptions {
  /** Directory. */
  readonly path: string;
  readonly mapSize: number;
  readonly maxDbs: number;
  readonly readOnly: boolean;
  /** Nothing waits for the disk, and a crash may leave anything. */
  readonly noSync: boolean;
}

export type Environment = RootDatabase<unknown, Key>;

/**
 * All writes are in transactions of ours. Those that lmdb would gather in a turn have a promise that nobody can hear.
 * Without `overlappingSync` a transaction is visible only after it is on disk.
 */
export function openEnvironment(options: EnvironmentOptions): Environment {
  if (!options.readOnly) makePrivateFolder(options.path);
  return open<unknown, Key>({
    ...options,
    ...FILE_MODE,
    noSubdir: false,
    overlappingSync: false,
    eventTurnBatching: false,
  });
}

/**
 * Every write of a transaction has a promise. Only the transaction's own is waited for; when it fails, on a full disk for
 * one, the others are rejected, too, and a rejection that nobody hears ends the process.
 */
export function unheard(write: Promise<unknown>): void {
  write.catch(() => {});
}

/** What a transaction resolves to. The reason for its failure comes as one more promise, inside of the error. */
export async function settled<T>(transaction: Promise<T>): Promise<T> {
  try {
    return await transaction;
  } catch (error) {
    const { commitError } = error as { commitError?: Promise<unknown> };
    if (commitError) unheard(commitError);
    throw error;
  }
}

/** All writes made in `write`, as one transaction; resolves when they are on disk. */
export async function transact(environment: Environment, write: () => void): Promise<void> {
  await settled(environment.batch(write));
  await settled(environment.flushed);
}

/** Bytes of an environment's file. */
export function fileBytes(environment: Environment): number {
  const { lastPageNumber, pageSize } = environment.getStats() as { lastPageNumber: number; pageSize: number };
  return (lastPageNumber + 1) * pageSize;
}

/** A row as lmdb has it: in a buffer that it uses again, or where it lies in the file. To be read at once. */
export function view<K extends Key>(
  table: Database<Buffer, K>,
  key: K,
  at: { readonly transaction?: Transaction },
): Buffer | undefined {
  // Its type leaves the options out.
  const read = table.getBinaryFast as Database<Buffer, K>["get"];
  const bytes = read.call(table, key, at) as Uint8Array | undefined;
  return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
