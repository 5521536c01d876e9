/**
 * How far a journal is applied to an environment: the newest record that is in it. The row with it is changed by every
 * commit, under the condition that it still says what the writer knows, so no two writers can commit from one state.
 *
 * Layout of the row: u48 epoch · 32-byte hash. Its version (LMDB's own 8 bytes before it) is the sequence.
 */
import { CairnlogError } from "../error.js";
import { HASH } from "./schema.js";

export interface JournalPosition {
  /** Number of the newest record, from 1 on; 0 before the first. */
  readonly sequence: number;
  /** Counts the writers that took the lead of a journal; 0 for a journal that has only one. */
  readonly epoch: number;
  /** Hash of the newest record; zeros while no journal wanted records as bytes. */
  readonly hash: Uint8Array;
}

export const NO_HASH: Uint8Array = new Uint8Array(HASH);
export const ORIGIN: JournalPosition = { sequence: 0, epoch: 0, hash: NO_HASH };

const EPOCH_BYTES = 6;

/** The row, without the version. */
export function packPosition({ epoch, hash }: JournalPosition): Buffer {
  const row = Buffer.alloc(EPOCH_BYTES + HASH);
  row.writeUIntBE(epoch, 0, EPOCH_BYTES);
  row.set(hash, EPOCH_BYTES);
  return row;
}

/** Inverse of `packPosition`. @throws CairnlogError `corrupt-log` */
export function unpackPosition(sequence: number, row: Buffer): JournalPosition {
  if (row.length !== EPOCH_BYTES + HASH || !Number.isSafeInteger(sequence) || sequence < 1)
    throw new CairnlogError(
      "corrupt-log",
      "The position of the journal cannot be read: the data directory is damaged.",
    );
  return { sequence, epoch: row.readUIntBE(0, EPOCH_BYTES), hash: Buffer.from(row.subarray(EPOCH_BYTES)) };
}
