/** Sets of whole numbers as bits. */

/** For numbers below `count`; none is set. */
export const newBits = (count: number): Int32Array => new Int32Array(Math.ceil(count / 32));

/** The number of bits that are set. */
export function countOf(bits: Int32Array): number {
  let count = 0;
  for (let i = 0; i < bits.length; i++) count += bitsIn(bits[i]!);
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
