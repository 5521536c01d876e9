/** Blocks of records: a term and the leaf index of an entry each, as `runs.ts` says. */
import { leastWhere } from "../../base/search.js";
import { TERM_BYTES } from "./term.js";

/** Source of the blocks of runs. */
export interface BlockSource {
  /** A block of a run, or a bitmap (`maps.ts`), valid until the next call. */
  block(run: number, number: number): Buffer | undefined;
}

export const RECORD_BYTES = 24;
/** 681 records and LMDB's own header fill exactly four pages. */
export const BLOCK_RECORDS = 681;

export const WORD_BYTES = 4;
export const RECORD_WORDS = RECORD_BYTES / WORD_BYTES;

/** A block in memory that can be copied by words. */
export interface RecordBlock {
  readonly bytes: Buffer;
  readonly words: Uint32Array;
  readonly view: DataView;
}

export function newBlock(): RecordBlock {
  const words = new Uint32Array(BLOCK_RECORDS * RECORD_WORDS);
  return { bytes: Buffer.from(words.buffer), words, view: new DataView(words.buffer) };
}

/** The leaf index of a record. Byte by byte: a third of the time of `partAt`. */
export function indexIn(block: Buffer, position: number): number {
  const at = lowAt(position);
  return (block[at - 2]! * 256 + block[at - 1]!) * 2 ** 32 + (lowWord(block, at) >>> 0);
}

/** Where the low four of the six bytes of a leaf index are. */
export const lowAt = (position: number): number => (position + 1) * RECORD_BYTES - WORD_BYTES;

export const lowWord = (block: Buffer, at: number): number =>
  (block[at]! << 24) | (block[at + 1]! << 16) | (block[at + 2]! << 8) | block[at + 3]!;

/** The first of the records [from, to), which are of one term, whose leaf index is at least `index`; `to` if there is none. */
export const leastIn = (block: Buffer, from: number, to: number, index: number): number =>
  leastWhere(from, to, (position) => indexIn(block, position) >= index);

export const readTerm = (block: Buffer, position: number): string =>
  block.toString("latin1", position * RECORD_BYTES, position * RECORD_BYTES + TERM_BYTES);
