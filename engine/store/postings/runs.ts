/**
 * Sorted runs: immutable postings on disk. A record is a term and the leaf index of an entry, 17 + 7 bytes, big-endian,
 * so byte order is the order of (kind, key, index). Blocks hold a fixed number of records, so the place of a rank is
 * known. The first record of each block, its fence, is in memory (0.05 bytes a posting), so a search reads only one
 * block.
 */

import { Recent } from "../../base/recent.js";
import { leastWhere } from "../../base/search.js";
import type { RunRow } from "../schema/rows.js";
import { isFiltered } from "../schema/schema.js";
import { countBelow } from "./lists.js";
import {
  addRecordToBloom,
  BLOCK_RECORDS,
  type BlockSource,
  createBloom,
  GROUP_BLOCKS,
  indexIn,
  isMapped,
  leastIn,
  MAPS,
  MapBuilder,
  markMap,
  newBlock,
  RECORD_BYTES,
  RECORD_WORDS,
  type RecordBlock,
  readMap,
  readTerm,
  setBits,
  WORD_BYTES,
} from "./run-format.js";
import { TERM_BYTES } from "./term.js";

const MAX_INDEX = 2 ** 48 - 1;

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

/** Ranks from `first` up to, but not including, `end`. */
interface Span {
  readonly first: number;
  readonly end: number;
}

/** Spans that a reader keeps: a megabyte. */
const KEPT_SPANS = 4_096;

/** Reads runs. Blocks are read in place, but no returned value points into LMDB's memory. */
export class RunReader {
  readonly #tables: BlockSource;
  /** A walk through a list makes it anew for each of its turns. A run never changes. */
  readonly #spans = new Recent<string, Span>(KEPT_SPANS);

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

  /** The ranks of the records of a term, or of those up to `last`. */
  span(run: Run, term: string, last = term): Span {
    return this.#spans.made(`${run.id} ${term}${last}`, () => this.#span(run, term, last));
  }

  #span(run: Run, term: string, last: string): Span {
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

  /**
   * Sets the bit number `index - from` of every leaf index in [from, to) of the records from rank `first` up to `end`, which are
   * of one term. Where the run has a bitmap, 32 leaf indexes take 2 ns; elsewhere each posting takes 3.
   */
  fill(run: Run, first: number, end: number, bits: Int32Array, from: number, to: number): void {
    const blocks = new TermBlocks(run, first, end);
    for (let number = blocks.with(from); number <= blocks.last && blocks.startOf(number) < to; ) {
      const group = blocks.mapped(number);
      if (group) {
        readMap(this.#block(run, MAPS + group.first), blocks.startOf(group.first), bits, from, to);
        number = group.end;
        continue;
      }
      const block = this.#block(run, number);
      let [position, until] = blocks.positions(number);
      if (blocks.startOf(number) < from) position = leastIn(block, position, until, from);
      if (blocks.startOf(number + 1) > to) until = leastIn(block, position, until, to);
      setBits(block, position, until, bits, from);
      number++;
    }
  }

  /** Sets the bits of the leaf indexes of the records from rank `first` up to `end`, of whatever terms, that have one. */
  fillRange(run: Run, first: number, end: number, bits: Int32Array): void {
    for (let rank = first; rank < end; ) {
      const position = rank % BLOCK_RECORDS;
      const until = Math.min(BLOCK_RECORDS, position + end - rank);
      setBits(this.#block(run, Math.floor(rank / BLOCK_RECORDS)), position, until, bits, 0);
      rank += until - position;
    }
  }

  /**
   * Sets the marks of those of `indexes`, which ascend, that are among the leaf indexes of the records from rank `first` up to
   * `end`, which are of one term. A block or bitmap is read once, and those are left out in which none of `indexes` can be.
   */
  mark(run: Run, first: number, end: number, indexes: readonly number[], marks: Uint8Array): void {
    const blocks = new TermBlocks(run, first, end);
    for (let i = countBelow(indexes, run.from), number = blocks.first; i < indexes.length; number++) {
      const from = indexes[i]!;
      if (from >= run.to) return;
      number = blocks.with(from, number);
      const group = blocks.mapped(number);
      if (group) {
        const end = countBelow(indexes, blocks.startOf(group.end), i);
        markMap(this.#block(run, MAPS + group.first), blocks.startOf(group.first), indexes, i, end, marks);
        i = end;
        number = group.end - 1;
        continue;
      }
      const next = blocks.startOf(number + 1);
      const block = this.#block(run, number);
      let [at, to] = blocks.positions(number);
      for (; i < indexes.length && indexes[i]! < next; i++) {
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

/** The blocks of the records from rank `first` up to `end`, which are of one term. */
class TermBlocks {
  readonly #run: Run;
  readonly #ranks: readonly [first: number, end: number];
  readonly first: number;
  /** The first block that begins with the term, if one does. */
  readonly #whole: number;
  readonly last: number;

  constructor(run: Run, first: number, end: number) {
    this.#run = run;
    this.#ranks = [first, end];
    this.first = Math.floor(first / BLOCK_RECORDS);
    this.#whole = Math.ceil(first / BLOCK_RECORDS);
    this.last = Math.floor((end - 1) / BLOCK_RECORDS);
  }

  /** No leaf index of the term in this block is below, and none in the blocks before is at or above it. */
  startOf(number: number): number {
    if (number < this.#whole) return this.#run.from;
    return number > this.last ? this.#run.to : this.#run.fences[number * PARTS + PARTS - 1]!;
  }

  /** The only block that can have `index`, if none below `least` can. */
  with(index: number, least = this.first): number {
    return this.startOf(least + 1) > index
      ? least
      : leastWhere(least + 1, this.last, (number) => this.startOf(number + 1) > index);
  }

  /** The places of the term's records in a block. */
  positions(number: number): [from: number, to: number] {
    const [first, end] = this.#ranks;
    const before = number * BLOCK_RECORDS;
    return [Math.max(0, first - before), Math.min(BLOCK_RECORDS, end - before)];
  }

  /** The group of a block, if it has a bitmap. The last block is in none: it may end with another term. */
  mapped(number: number): { readonly first: number; readonly end: number } | null {
    if (!this.#run.mapped || number < this.#whole || number >= this.last) return null;
    const first = number - ((number - this.#whole) % GROUP_BLOCKS);
    const end = Math.min(first + GROUP_BLOCKS, this.last);
    return isMapped(end - first, this.startOf(first), this.startOf(end)) ? { first, end } : null;
  }
}

/** Builds the blocks of one run from records that arrive in order. */
export class RunBuilder {
  readonly #write: (block: number, records: Buffer) => void;
  readonly bloom: Uint8Array;
  readonly #fences: Buffer[] = [];
  readonly #maps: MapBuilder;
  #block = newBlock();
  #filled = 0;
  count = 0;

  /**
   * @param bloomTerms an upper bound of the number of distinct terms in the Bloom filter
   * @param write called with each block, and with each bitmap under its number
   */
  constructor(bloomTerms: number, write: (block: number, records: Buffer) => void) {
    this.bloom = createBloom(bloomTerms);
    this.#write = write;
    this.#maps = new MapBuilder(write);
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
    this.#maps.add(this.#fences.length, records);
    this.#fences.push(Buffer.from(records.subarray(0, RECORD_BYTES)));
    this.#block = newBlock();
    this.#filled = 0;
  }

  /** Writes the last, partial block. @returns the first records of all blocks */
  finish(): Uint8Array {
    if (this.#filled) this.#flush();
    this.#maps.finish();
    return Buffer.concat(this.#fences);
  }
}
