/**
 * Sorted runs: immutable postings on disk. A record is a term and the leaf index of an entry, 17 + 7 bytes, big-endian,
 * so byte order is the order of (kind, key, index). Blocks hold a fixed number of records, so the place of a rank is
 * known. The first record of each block, its fence, is in memory (0.05 bytes a posting), so a search reads only one
 * block.
 */

import { leastWhere } from "../../base/search.js";
import type { RunRow } from "../schema/rows.js";
import { isFiltered } from "../schema/schema.js";
import { addRecordToBloom, createBloom } from "./bloom.js";
import { countBelow } from "./lists.js";
import { TERM_BYTES } from "./term.js";

/** Source of the blocks of runs. */
export interface BlockSource {
  /** A block of a run, valid until the next call. */
  block(run: number, number: number): Buffer | undefined;
}

export const RECORD_BYTES = 24;
/** 681 records and LMDB's own header fill exactly four pages. */
export const BLOCK_RECORDS = 681;
const MAX_INDEX = 2 ** 48 - 1;

const WORD_BYTES = 4;
const RECORD_WORDS = RECORD_BYTES / WORD_BYTES;
/** Number of words that hold bytes of the term; the rest of the last word belongs to the index. */
const TERM_WORDS = 5;
/** Numbers that represent a record and compare like its bytes: bytes 0–5, 6–11 and 12–16 (the term), and the index. */
const PARTS = 4;

/** A term and a leaf index as these numbers, which compare ten times as fast as ranges of bytes. */
type Position = readonly [number, number, number, number];

const sixBytes = (bytes: Buffer, at: number): number => bytes.readUInt32BE(at) * 65_536 + bytes.readUInt16BE(at + 4);

/** Part number `i` of the record at `at`. */
function partAt(bytes: Buffer, at: number, i: number): number {
  if (i === 2) return bytes.readUInt32BE(at + 12) * 256 + bytes[at + 16]!;
  return sixBytes(bytes, at + (i === 3 ? TERM_BYTES + 1 : 6 * i));
}

/** The position of the record of `term` and `index` in sort order. */
export function positionOf(term: string, index: number): Position {
  const part = (from: number, to: number) => {
    let value = 0;
    for (let i = from; i < to; i++) value = value * 256 + term.charCodeAt(i);
    return value;
  };
  return [part(0, 6), part(6, 12), part(12, TERM_BYTES), index];
}

/** Fences as numbers, `PARTS` for each block, from the first records of all blocks. */
export function fencesOf(records: Uint8Array): Float64Array {
  const bytes = Buffer.from(records.buffer, records.byteOffset, records.length);
  const fences = new Float64Array((bytes.length / RECORD_BYTES) * PARTS);
  for (let n = 0; n < fences.length; n++) fences[n] = partAt(bytes, Math.floor(n / PARTS) * RECORD_BYTES, n % PARTS);
  return fences;
}

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

/** A live run as it is on disk: its row and its id. */
export interface StoredRun extends Omit<RunRow, "fences"> {
  readonly id: number;
  readonly fences: Float64Array;
}

/** A live run as it is kept in memory. */
export interface Run extends Omit<StoredRun, "bloom"> {
  /** Null where no filter is held. A search then reads a block of this run for a term that it lacks. */
  readonly bloom: Uint8Array | null;
}

/** The number of blocks of a run. */
export const blocksOf = (run: Pick<RunRow, "count">): number => Math.ceil(run.count / BLOCK_RECORDS);

/** The leaf index of a record. Byte by byte: a third of the time of `partAt`. */
function indexIn(block: Buffer, position: number): number {
  const at = lowAt(position);
  return (block[at - 2]! * 256 + block[at - 1]!) * 2 ** 32 + (lowWord(block, at) >>> 0);
}

/** Where the low four of the six bytes of a leaf index are. */
const lowAt = (position: number): number => (position + 1) * RECORD_BYTES - WORD_BYTES;

const lowWord = (block: Buffer, at: number): number =>
  (block[at]! << 24) | (block[at + 1]! << 16) | (block[at + 2]! << 8) | block[at + 3]!;

/** The first of the records [from, to), which are of one term, whose leaf index is at least `index`; `to` if there is none. */
const leastIn = (block: Buffer, from: number, to: number, index: number): number =>
  leastWhere(from, to, (position) => indexIn(block, position) >= index);

const readTerm = (block: Buffer, position: number): string =>
  block.toString("latin1", position * RECORD_BYTES, position * RECORD_BYTES + TERM_BYTES);

/** Whether the record at `at` sorts before `target`. */
function isBefore(bytes: Buffer, at: number, target: Position): boolean {
  for (let i = 0; i < PARTS; i++) {
    const part = partAt(bytes, at, i);
    if (part !== target[i]) return part < target[i]!;
  }
  return false;
}

/** The last block that begins before `target`; −1 if none does. */
function blockBefore({ fences }: Run, target: Position): number {
  const isAtOrAfter = (block: number): boolean => {
    let i = 0;
    while (i < PARTS - 1 && fences[block * PARTS + i] === target[i]) i++;
    return fences[block * PARTS + i]! >= target[i]!;
  };
  return leastWhere(0, fences.length / PARTS, isAtOrAfter) - 1;
}

/** Reads runs. Blocks are read in place, but no returned value points into LMDB's memory. */
export class RunReader {
  readonly #tables: BlockSource;

  constructor(tables: BlockSource) {
    this.#tables = tables;
  }

  #block(run: Run, number: number): Buffer {
    return this.#tables.block(run.id, number)!;
  }

  /** The number of records of the run that sort before `target`. */
  rank(run: Run, target: Position): number {
    const number = blockBefore(run, target);
    return number < 0 ? 0 : this.#rankIn(run, number, this.#block(run, number), target);
  }

  /** The ranks of the records of a term, or of those up to `last`: from `first` up to, but not including, `end`. */
  span(run: Run, term: string, last = term): { readonly first: number; readonly end: number } {
    const [low, high] = [positionOf(term, 0), positionOf(last, MAX_INDEX)];
    const [from, to] = [blockBefore(run, low), blockBefore(run, high)];
    if (from !== to || from < 0) return { first: this.rank(run, low), end: this.rank(run, high) };
    // Usually the end is in the same block; reading that block once halves the cost.
    const block = this.#block(run, from);
    return { first: this.#rankIn(run, from, block, low), end: this.#rankIn(run, from, block, high) };
  }

  #rankIn(run: Run, number: number, block: Buffer, target: Position): number {
    const records = Math.min(BLOCK_RECORDS, run.count - number * BLOCK_RECORDS);
    const rank = leastWhere(0, records, (record) => !isBefore(block, record * RECORD_BYTES, target));
    return number * BLOCK_RECORDS + rank;
  }

  /** Leaf index of the record at `rank`. */
  indexAt(run: Run, rank: number): number {
    return indexIn(this.#block(run, Math.floor(rank / BLOCK_RECORDS)), rank % BLOCK_RECORDS);
  }

  /**
   * Appends the leaf indexes of `count` records from `rank` on. About 5 ns each; `indexAt` costs a look-up for each.
   */
  readIndexes(run: Run, rank: number, count: number, into: number[]): void {
    for (let done = 0; done < count; ) {
      const position = (rank + done) % BLOCK_RECORDS;
      const block = this.#block(run, Math.floor((rank + done) / BLOCK_RECORDS));
      const here = Math.min(count - done, BLOCK_RECORDS - position);
      for (let i = 0; i < here; i++) into.push(indexIn(block, position + i));
      done += here;
    }
  }

  /** Sets the bits number `index - base` of the leaf indexes of `count` records from `rank` on. About 3 ns each. */
  fillBits(run: Run, rank: number, count: number, bits: Int32Array, base: number): void {
    for (let done = 0; done < count; ) {
      const position = (rank + done) % BLOCK_RECORDS;
      const block = this.#block(run, Math.floor((rank + done) / BLOCK_RECORDS));
      const here = Math.min(count - done, BLOCK_RECORDS - position);
      for (let i = 0, at = lowAt(position); i < here; i++, at += RECORD_BYTES) {
        // The low words alone: there are fewer than 2^32 bits.
        const bit = lowWord(block, at) - base;
        bits[bit >>> 5]! |= 1 << (bit & 31);
      }
      done += here;
    }
  }

  /**
   * Sets the marks of those of `indexes`, which ascend, that are among the leaf indexes of the records from rank `first` up to
   * `end`, which are of one term. A block is read once, and those are left out in which none of `indexes` can be.
   */
  mark(run: Run, first: number, end: number, indexes: readonly number[], marks: Uint8Array): void {
    const { fences } = run;
    const lastBlock = Math.floor((end - 1) / BLOCK_RECORDS);
    // The fences behind the first block are of this term, so their leaf indexes ascend.
    const startOf = (block: number) => (block > lastBlock ? run.to : fences[block * PARTS + PARTS - 1]!);
    for (
      let i = countBelow(indexes, run.from), number = Math.floor(first / BLOCK_RECORDS);
      i < indexes.length;
      number++
    ) {
      const from = indexes[i]!;
      if (from >= run.to) return;
      if (from >= startOf(number + 1))
        number = leastWhere(number + 2, lastBlock + 1, (block) => startOf(block) > from) - 1;
      const next = startOf(number + 1);
      const block = this.#block(run, number);
      const to = Math.min(BLOCK_RECORDS, end - number * BLOCK_RECORDS);
      for (let at = Math.max(0, first - number * BLOCK_RECORDS); i < indexes.length && indexes[i]! < next; i++) {
        at = leastIn(block, at, to, indexes[i]!);
        if (at < to && indexIn(block, at) === indexes[i]) marks[i] = 1;
      }
    }
  }

  termAt(run: Run, rank: number): string {
    return readTerm(this.#block(run, Math.floor(rank / BLOCK_RECORDS)), rank % BLOCK_RECORDS);
  }

  /** Copies one block, for merging. */
  copyBlock(run: Run, number: number, into: RecordBlock): void {
    into.bytes.set(this.#block(run, number).subarray(0, RECORD_BYTES * BLOCK_RECORDS));
  }
}

/** Builds the blocks of one run from records that arrive in order. */
export class RunBuilder {
  readonly #write: (block: number, records: Buffer) => void;
  readonly bloom: Uint8Array;
  readonly #fences: Buffer[] = [];
  #block = newBlock();
  #filled = 0;
  count = 0;

  /** @param bloomTerms an upper bound of the number of distinct terms in the Bloom filter */
  constructor(bloomTerms: number, write: (block: number, records: Buffer) => void) {
    this.bloom = createBloom(bloomTerms);
    this.#write = write;
  }

  /**
   * Adds all records of one term.
   * @param words holds the term's bytes, from `from` on, as big-endian words; the last word holds one byte
   */
  add(words: Int32Array, from: number, indexes: readonly number[]): void {
    let at = 0;
    for (const index of indexes) {
      at = this.#slot();
      const { view } = this.#block;
      for (let i = 0; i < TERM_WORDS - 1; i++) view.setInt32(at + WORD_BYTES * i, words[from + i]!);
      view.setInt32(at + WORD_BYTES * (TERM_WORDS - 1), words[from + TERM_WORDS - 1]! | Math.floor(index / 2 ** 32));
      view.setInt32(at + WORD_BYTES * TERM_WORDS, index);
    }
    if (isFiltered(words[from]! >>> 24)) addRecordToBloom(this.bloom, this.#block.bytes, at);
  }

  /** Copies the record at `position` of another block. */
  copy(source: RecordBlock, position: number): void {
    const to = this.#slot() / WORD_BYTES;
    const { words } = source;
    const { words: target } = this.#block;
    for (let i = 0, from = position * RECORD_WORDS; i < RECORD_WORDS; i++) target[to + i] = words[from + i]!;
    const at = position * RECORD_BYTES;
    if (isFiltered(source.bytes[at]!)) addRecordToBloom(this.bloom, source.bytes, at);
  }

  #slot(): number {
    if (this.#filled === BLOCK_RECORDS) this.#flush();
    this.count++;
    return RECORD_BYTES * this.#filled++;
  }

  #flush(): void {
    const records = this.#block.bytes.subarray(0, RECORD_BYTES * this.#filled);
    this.#write(this.#fences.length, records);
    this.#fences.push(Buffer.from(records.subarray(0, RECORD_BYTES)));
    this.#block = newBlock();
    this.#filled = 0;
  }

  /** Writes the last, partial block. @returns the first records of all blocks */
  finish(): Uint8Array {
    if (this.#filled) this.#flush();
    return Buffer.concat(this.#fences);
  }
}
