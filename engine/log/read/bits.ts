/** Sets of leaf indexes as bits, 32 in a word. */
import { leastWhere } from "../../base/search.js";
import type { PostingList } from "../../store/postings/lists.js";

/** For numbers below `count`; none is set. */
export const newBits = (count: number): Int32Array => new Int32Array(Math.ceil(count / 32));

/** The number of bits that are set, in all words or in [from, to). */
export function countOf(bits: Int32Array, from = 0, to = bits.length): number {
  let count = 0;
  for (let i = from; i < to; i++) if (bits[i]) count += bitsIn(bits[i]!);
  return count;
}

/** `base` and the number of each bit that is set, ascending: up to `count` of them, from number `first` on. */
export function indexesOf(bits: Int32Array, base = 0, first = 0, count = countOf(bits) - first): number[] {
  const indexes: number[] = [];
  let skipped = first;
  for (let i = 0; i < bits.length && indexes.length < count; i++) {
    const here = skipped && bitsIn(bits[i]!);
    if (here && here <= skipped) skipped -= here;
    else
      for (let rest = bits[i]!; rest && indexes.length < count; rest &= rest - 1)
        if (skipped) skipped--;
        else indexes.push(base + i * 32 + 31 - Math.clz32(rest & -rest));
  }
  return indexes;
}

/** The number of bits that are set in a word: of pairs of bits, of fours, of eights, and of all. */
function bitsIn(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** Words of bits whose number of bits is kept. */
const COUNTED = 32;

/** The numbers of the bits that are set. */
export function bitList(bits: Int32Array): PostingList {
  // Behind each group of words, how many bits are set up to there.
  const counts = new Int32Array(1 + Math.ceil(bits.length / COUNTED));
  for (let i = 1; i < counts.length; i++)
    counts[i] = counts[i - 1]! + countOf(bits, COUNTED * (i - 1), Math.min(bits.length, COUNTED * i));
  const seek = (index: number): number => {
    const word = Math.min(bits.length, Math.floor(index / 32));
    const group = Math.floor(word / COUNTED);
    const rest = word < bits.length ? bitsIn(bits[word]! & ((1 << (index & 31)) - 1)) : 0;
    return counts[group]! + countOf(bits, COUNTED * group, word) + rest;
  };
  const from = (index: number, count: number): number[] => {
    const word = Math.floor(index / 32);
    const before = word < bits.length ? bitsIn(bits[word]! & ((1 << (index & 31)) - 1)) : 0;
    return indexesOf(bits.subarray(word), 32 * word, before, count);
  };
  const length = counts.at(-1)!;
  return {
    length,
    at(rank) {
      if (!(rank >= 0 && rank < length)) throw new RangeError(`rank ${rank} is past the end of the list`);
      return leastWhere(0, 32 * bits.length, (index) => seek(index + 1) > rank);
    },
    seek,
    window: (index, count) => from(index, Math.min(count, length - seek(index))),
    between: (index, to) => from(index, seek(to) - seek(index)),
    fill(into, base, to) {
      const end = Math.min(to, 32 * bits.length) - base;
      const [words, ahead] = [Math.floor(end / 32), base / 32];
      for (let i = 0; i < words; i++) into[i]! |= bits[ahead + i]!;
      if (end & 31 && end > 0) into[words]! |= bits[ahead + words]! & ((1 << (end & 31)) - 1);
    },
    mark(indexes, marks) {
      for (let i = 0; i < indexes.length; i++)
        if (((bits[indexes[i]! >>> 5] ?? 0) >>> (indexes[i]! & 31)) & 1) marks[i] = 1;
    },
  };
}
