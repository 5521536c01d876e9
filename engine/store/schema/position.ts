/**
 * The journal's position: the newest record that is applied to an environment. Every commit changes the row with the
 * position, under the condition that the row still has the value that the writer knows. So no two writers can commit
 * from the same state.
 *
 * Layout of the row: u48 epoch · 32-byte hash. The row's LMDB version (8 bytes before it) is the sequence.
 */
import { CairnlogError } from "../../base/error.js";
import { HASH } from "./schema.js";

export interface JournalPosition {
  /** Number of the newest record; the first record is 1. 0 before the first record. */
  readonly sequence: number;
  /** Counts the writers that have taken the lead of a journal; 0 for a journal that has only one. */
  readonly epoch: number;
  /** Hash of the newest record; zeros as long as no journal has needed records as bytes. */
  readonly hash: Uint8Array;
}

export const NO_HASH: Uint8Array = new Uint8Array(HASH);
export const ORIGIN: JournalPosition = { sequence: 0, epoch: 0, hash: NO_HASH };

/** Whether a log that has records is of no journal that keeps them as bytes. */
export const isOutside = ({ sequence, hash }: JournalPosition): boolean =>
  sequence > 0 && Buffer.compare(hash, NO_HASH) === 0;

const EPOCH_BYTES = 6;

/** The bytes of the row, without its version. */
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
