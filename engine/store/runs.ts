/**
 * Sorted runs: immutable postings on disk. A record is a term and the leaf index of an entry, 17 + 7 bytes, big-endian,
 * so that byte order is (kind, key, index). Blocks hold a fixed number of records, so a rank is a place.
 */
import { addRecordToBloom, addToBloom, createBloom } from "./bloom.js";
import { BLOOM_KINDS, type RunRow } from "./schema.js";
import type { PostingTables } from "./store.js";
import { TERM_BYTES } from "./term.js";

export const RECORD_BYTES = 24;
/** 681 records and LMDB's own header fill four pages exactly. */
export const BLOCK_RECORDS = 681;

const WORD_BYTES = 4;
const RECORD_WORDS = RECORD_BYTES / WORD_BYTES;

/** A block in memory, which can be copied by words. */
export interface RecordBlock {
  readonly bytes: Buffer;
  readonly words: Uint32Array;
}

function newBlock(): RecordBlock {
  const words = new Uint32Array(BLOCK_RECORDS * RECORD_WORDS);
  return { bytes: Buffer.from(words.buffer), words };
}

/** A live run: its row, kept in memory, under its id. */
export interface Run extends RunRow {
  readonly id: number;
}

/** One posting as it is on disk. */
export function record(term: string, index: number): Buffer {
  const bytes = Buffer.allocUnsafe(RECORD_BYTES);
  bytes.write(term, 0, TERM_BYTES, "latin1");
  writeIndex(bytes, TERM_BYTES, index);
  return bytes;
}

function writeIndex(bytes: Buffer, at: number, index: number): void {
  bytes[at] = 0;
  bytes.writeUIntBE(index, at + 1, 6);
}

const readIndex = (block: Buffer, position: number): number =>
  block.readUIntBE(position * RECORD_BYTES + TERM_BYTES + 1, 6);

const readTerm = (block: Buffer, position: number): string =>
  block.toString("latin1", position * RECORD_BYTES, position * RECORD_BYTES + TERM_BYTES);

/** Reads runs. Blocks are read in place: nothing returned here points into LMDB's memory. */
export class RunReader {
  readonly #tables: Pick<PostingTables, "block">;

  constructor(tables: Pick<PostingTables, "block">) {
    this.#tables = tables;
  }

  #block(run: Run, number: number): Buffer {
    return this.#tables.block(run.id, number)!;
  }

  /** How many records of the run sort before `target`: a binary search over blocks, then within one. */
  rank(run: Run, target: Buffer): number {
    let low = 0;
    let high = Math.ceil(run.count / BLOCK_RECORDS);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#block(run, middle).compare(target, 0, RECORD_BYTES, 0, RECORD_BYTES) < 0) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return 0;
    const number = low - 1;
    const block = this.#block(run, number);
    let from = 0;
    let to = Math.min(BLOCK_RECORDS, run.count - number * BLOCK_RECORDS);
    while (from < to) {
      const middle = (from + to) >>> 1;
      const at = middle * RECORD_BYTES;
      if (block.compare(target, 0, RECORD_BYTES, at, at + RECORD_BYTES) < 0) from = middle + 1;
      else to = middle;
    }
    return number * BLOCK_RECORDS + from;
  }

  /** Leaf index of the record at `rank`. */
  indexAt(run: Run, rank: number): number {
    return readIndex(this.#block(run, Math.floor(rank / BLOCK_RECORDS)), rank % BLOCK_RECORDS);
  }

  /** Appends the leaf indexes of `count` records from `rank` on: some 20 ns each, where `indexAt` costs a look-up. */
  readIndexes(run: Run, rank: number, count: number, into: number[]): void {
    for (let done = 0; done < count; ) {
      const position = (rank + done) % BLOCK_RECORDS;
      const block = this.#block(run, Math.floor((rank + done) / BLOCK_RECORDS));
      const here = Math.min(count - done, BLOCK_RECORDS - position);
      for (let i = 0; i < here; i++) into.push(readIndex(block, position + i));
      done += here;
    }
  }

  termAt(run: Run, rank: number): string {
    return readTerm(this.#block(run, Math.floor(rank / BLOCK_RECORDS)), rank % BLOCK_RECORDS);
  }

  /** A copy of one block, for merging. */
  copyBlock(run: Run, number: number): RecordBlock {
    const block = newBlock();
    block.bytes.set(this.#block(run, number).subarray(0, RECORD_BYTES * BLOCK_RECORDS));
    return block;
  }
}

/** Builds the blocks of one run from records that arrive in order. */
export class RunBuilder {
  readonly #write: (block: number, records: Buffer) => void;
  readonly bloom: Uint8Array;
  #block: Buffer;
  #words: Uint32Array;
  #filled = 0;
  #blocks = 0;
  count = 0;

  /** @param bloomTerms upper bound of the number of distinct terms that enter the Bloom filter */
  constructor(bloomTerms: number, write: (block: number, records: Buffer) => void) {
    this.bloom = createBloom(bloomTerms);
    this.#write = write;
    ({ bytes: this.#block, words: this.#words } = newBlock());
  }

  /** A term's indexes must arrive together. */
  add(term: string, indexes: readonly number[]): void {
    for (const index of indexes) {
      const at = this.#slot();
      // Some 20 ns; a call of `write` is 80.
      for (let i = 0; i < TERM_BYTES; i++) this.#block[at + i] = term.charCodeAt(i);
      writeIndex(this.#block, at + TERM_BYTES, index);
    }
    if (BLOOM_KINDS.has(term.charCodeAt(0))) addToBloom(this.bloom, term);
  }

  /** Copies record number `position` of another block. */
  copy(source: RecordBlock, position: number): void {
    const to = this.#slot() / WORD_BYTES;
    const { words } = source;
    for (let i = 0, from = position * RECORD_WORDS; i < RECORD_WORDS; i++) this.#words[to + i] = words[from + i]!;
    const at = position * RECORD_BYTES;
    if (BLOOM_KINDS.has(source.bytes[at]!)) addRecordToBloom(this.bloom, source.bytes, at);
  }

  #slot(): number {
    if (this.#filled === BLOCK_RECORDS) this.#flush();
    this.count++;
    return RECORD_BYTES * this.#filled++;
  }

  #flush(): void {
    this.#write(this.#blocks++, this.#block.subarray(0, RECORD_BYTES * this.#filled));
    ({ bytes: this.#block, words: this.#words } = newBlock());
    this.#filled = 0;
  }

  /** Writes the last, partial block. */
  finish(): void {
    if (this.#filled) this.#flush();
  }
}
