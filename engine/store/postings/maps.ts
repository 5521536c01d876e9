/**
 * Bitmaps of frequent terms, beside their records: one row for a group of blocks that are all of one term, if their leaf
 * indexes lie close together. Which groups have one, the fences tell.
 */
import { BLOCK_RECORDS, indexIn } from "./records.js";
import { TERM_BYTES } from "./term.js";

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

/**
 * Sets the bit number `index - from` of every leaf index in [from, to) of a group, whose first one is `first`.
 * @param from a multiple of 32, so that the bits of both come together by words
 */
export function readMap(map: Buffer, first: number, bits: Int32Array, from: number, to: number): void {
  const view = new DataView(map.buffer, map.byteOffset, map.length);
  const base = baseOf(first);
  const ahead = (base - from) / 32;
  const [whole, left] = [Math.min(map.length / 4, Math.floor((to - base) / 32)), (to - base) % 32];
  for (let i = Math.max(0, -ahead); i < whole; i++) bits[ahead + i]! |= view.getInt32(4 * i, true);
  if (left && whole < map.length / 4) bits[ahead + whole]! |= view.getInt32(4 * whole, true) & ((1 << left) - 1);
}
