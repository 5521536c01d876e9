/** What a run of postings consists of: records, the filter of their terms, and maps of where they are. */
import { leastWhere } from "../../base/search.js";
import { TERM_BYTES } from "./term.js";

/** Source of the blocks of runs. */
export interface BlockSource {
  /** A block of a run, or a bitmap (below), valid until the next call. */
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
const lowAt = (position: number): number => (position + 1) * RECORD_BYTES - WORD_BYTES;

const lowWord = (block: Buffer, at: number): number =>
  (block[at]! << 24) | (block[at + 1]! << 16) | (block[at + 2]! << 8) | block[at + 3]!;

/** Sets the bit number `index - base` of the leaf index of each of the records [from, to). */
export function setBits(block: Buffer, from: number, to: number, bits: Int32Array, base: number): void {
  for (let at = lowAt(from), end = lowAt(to); at < end; at += RECORD_BYTES) {
    // The low words alone: there are fewer than 2^32 bits.
    const bit = lowWord(block, at) - base;
    bits[bit >>> 5]! |= 1 << (bit & 31);
  }
}

/** The first of the records [from, to), which are of one term, whose leaf index is at least `index`; `to` if there is none. */
export const leastIn = (block: Buffer, from: number, to: number, index: number): number =>
  leastWhere(from, to, (position) => indexIn(block, position) >= index);

export const readTerm = (block: Buffer, position: number): string =>
  block.toString("latin1", position * RECORD_BYTES, position * RECORD_BYTES + TERM_BYTES);

// Bloom filter over terms. Nearly every submission is new, and a new submission must not cost a search in every run of
// the log. With ten bits a term and seven probes, 0.8 % of the answers are false positives, and a million terms take
// 1.25 MB.

const BITS_PER_TERM = 10;
const PROBES = 7;

export function createBloom(terms: number): Uint8Array {
  return new Uint8Array(Math.max(8, Math.ceil((terms * BITS_PER_TERM) / 8)));
}

/**
 * Where the bits of a term are, in filters of any length. The key of a term is already a hash, so two of its words give all
 * places (Kirsch and Mitzenmacher): `start`, and then each `step` bits further on.
 */
export interface Probe {
  readonly start: number;
  readonly step: number;
}

const probe = (start: number, word: number): Probe => ({ start, step: (word | 1) >>> 0 });

export const probeOf = (term: string): Probe => probe(wordOf(term, TERM_BYTES - 8), wordOf(term, TERM_BYTES - 4));

/** Adds the term of the record at offset `at` of a block. */
export function addRecordToBloom(bloom: Uint8Array, block: Buffer, at: number): void {
  const { start, step } = probe(block.readUInt32LE(at + TERM_BYTES - 8), block.readUInt32LE(at + TERM_BYTES - 4));
  const bits = bloom.length * 8;
  const stride = remainder(step, bits);
  for (let i = 0, bit = remainder(start, bits); i < PROBES; i++) {
    bloom[bit >>> 3]! |= 1 << (bit & 7);
    bit = next(bit, stride, bits);
  }
}

/**
 * False only if the term was never added. The first bits are looked at together, without a branch between them: they are
 * in parts of memory that nobody has touched for a while, and the processor waits for all of them at once. Three terms
 * in nine filters that are in no cache take 1.6 µs, and 4.3 with a branch after each bit.
 */
export function mayContain(bloom: Uint8Array, { start, step }: Probe): boolean {
  const bits = bloom.length * 8;
  const stride = remainder(step, bits);
  const first = remainder(start, bits);
  const second = next(first, stride, bits);
  let bit = next(second, stride, bits);
  let isSet = bitAt(bloom, first) & bitAt(bloom, second) & bitAt(bloom, bit);
  for (let i = 3; isSet && i < PROBES; i++) {
    bit = next(bit, stride, bits);
    isSet = bitAt(bloom, bit);
  }
  return isSet === 1;
}

const next = (bit: number, stride: number, bits: number): number => {
  const sum = bit + stride;
  return sum >= bits ? sum - bits : sum;
};

const bitAt = (bloom: Uint8Array, bit: number): number => (bloom[bit >>> 3]! >>> (bit & 7)) & 1;

/**
 * `value % bits` for a value below 2³², without the `%` of doubles: a term is added in 88 ns instead of 131. It is exact: a
 * quotient that is no integer is further from the next integer than a double is from its neighbour.
 */
const remainder = (value: number, bits: number): number => value - Math.floor(value / bits) * bits;

const wordOf = (term: string, at: number): number =>
  (term.charCodeAt(at) |
    (term.charCodeAt(at + 1) << 8) |
    (term.charCodeAt(at + 2) << 16) |
    (term.charCodeAt(at + 3) << 24)) >>>
  0;

// Bitmaps of frequent terms, beside their records: one row for a group of blocks that are all of one term, if their leaf
// indexes lie close together. Which groups have one, the fences tell.

/** Number under which the bitmap of a group is filed: this plus the number of its first block. */
export const MAPS = 2 ** 32;
/** Blocks of a group, if the term has so many left. */
export const GROUP_BLOCKS = 32;
const LEAST_BLOCKS = 4;
/** Leaf indexes for each posting, up to which a group has a bitmap: this many bits, beside 192 of the record. */
const SPARSEST = 32;

/** Whether there is a bitmap of a group of so many blocks, whose leaf indexes are in [from, to). */
export const isMapped = (blocks: number, from: number, to: number): boolean =>
  blocks >= LEAST_BLOCKS && to - from <= SPARSEST * BLOCK_RECORDS * blocks;

/** The leaf index that bit 0 of a bitmap stands for. */
const baseOf = (from: number): number => from - (from % 32);

/** Makes the bitmaps of a run. */
export class MapBuilder {
  readonly #write: (number: number, map: Buffer) => void;
  /** The blocks of the group that begin with its term. The last one may end with another term. */
  #group: Buffer[] = [];
  #first = 0;

  constructor(write: (number: number, map: Buffer) => void) {
    this.#write = write;
  }

  /** Takes the records of the next block, which must not change afterwards. */
  add(number: number, records: Buffer): void {
    const isSame = this.#group[0]?.compare(records, 0, TERM_BYTES, 0, TERM_BYTES) === 0;
    if (!isSame) this.finish();
    else if (this.#group.length === GROUP_BLOCKS) this.#close(records);
    if (!this.#group.length) this.#first = number;
    this.#group.push(records);
  }

  /** Call this after the last block. */
  finish(): void {
    const last = this.#group.pop();
    if (last) this.#close(last);
  }

  /** @param next the block behind the group */
  #close(next: Buffer): void {
    const group = this.#group;
    this.#group = [];
    if (!group.length) return;
    const [from, to] = [indexIn(group[0]!, 0), indexIn(next, 0)];
    if (!isMapped(group.length, from, to)) return;
    const base = baseOf(from);
    const map = Buffer.alloc(4 * Math.ceil((to - base) / 32));
    for (const block of group)
      for (let position = 0; position < BLOCK_RECORDS; position++) {
        const bit = indexIn(block, position) - base;
        map[bit >>> 3]! |= 1 << (bit & 7);
      }
    this.#write(MAPS + this.#first, map);
  }
}

/** Sets the marks of those of `indexes`, from number `from` up to `to`, that a group has, whose first leaf index is `first`. */
export function markMap(
  map: Buffer,
  first: number,
  indexes: readonly number[],
  from: number,
  to: number,
  marks: Uint8Array,
): void {
  const base = baseOf(first);
  for (let i = from; i < to; i++) {
    const bit = indexes[i]! - base;
    if (((map[bit >>> 3] ?? 0) >>> (bit & 7)) & 1) marks[i] = 1;
  }
}

/**
 * Sets the bit number `index - from` of every leaf index in [from, to) of a group, whose first one is `first`.
 * @param from a multiple of 32, so that the bits of both come together by words
 */
export function readMap(map: Buffer, first: number, bits: Int32Array, from: number, to: number): void {
  // Every processor that LMDB is built for here is little-endian. A value need not begin at a multiple of four.
  const { buffer, byteOffset } = map.byteOffset % WORD_BYTES ? Uint8Array.from(map) : map;
  const words = new Int32Array(buffer, byteOffset, map.length / WORD_BYTES);
  const base = baseOf(first);
  const ahead = (base - from) / 32;
  const [whole, left] = [Math.min(words.length, Math.floor((to - base) / 32)), (to - base) % 32];
  for (let i = Math.max(0, -ahead); i < whole; i++) bits[ahead + i]! |= words[i]!;
  if (left && whole < words.length) bits[ahead + whole]! |= words[whole]! & ((1 << left) - 1);
}
