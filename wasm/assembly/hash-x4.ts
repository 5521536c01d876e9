// Leaves and nodes in groups of four, one in each 32-bit lane, two groups at a time. Hex digits exist only here,
// between load and compression.
import { DIGITS } from "./constants";
import { leaves as leavesX1, nodes as nodesX1, rfc6962Nodes as rfc6962NodesX1 } from "./hash-x1";
import { NODE, PAIR } from "./layout";
import { LEAF_V1, LEAF_V2, NODE_RFC6962, NODE_V1, NODE_V2, SCHEDULE } from "./padding";
import { begin, compress, compressPrepared, SCHEDULE_BYTES, stateWord } from "./rounds-x4";

/** The two groups' blocks. */
const WORDS: usize = memory.data(2 * 1024, 16);

/** The schedule of the last block: version 1's, the same in all lanes, or gathered for the four operands. */
const LEAF_V1_X4: usize = memory.data(1024, 16);
const NODE_V1_X4: usize = memory.data(1024, 16);
const GATHERED: usize = memory.data(2 * 1024, 16);
for (let t: usize = 0; t < 64; t++) {
  v128.store(LEAF_V1_X4 + (t << 4), v128.load32_splat(LEAF_V1 + (t << 2)));
  v128.store(NODE_V1_X4 + (t << 4), v128.load32_splat(NODE_V1 + (t << 2)));
}

// @ts-ignore: decorator
@inline function low16(x: v128, y: v128): v128 { return v128.shuffle<u16>(x, y, 0, 8, 1, 9, 2, 10, 3, 11); }
// @ts-ignore: decorator
@inline function high16(x: v128, y: v128): v128 { return v128.shuffle<u16>(x, y, 4, 12, 5, 13, 6, 14, 7, 15); }
// @ts-ignore: decorator
@inline function low32(x: v128, y: v128): v128 { return v128.shuffle<u32>(x, y, 0, 4, 1, 5); }
// @ts-ignore: decorator
@inline function high32(x: v128, y: v128): v128 { return v128.shuffle<u32>(x, y, 2, 6, 3, 7); }
// @ts-ignore: decorator
@inline function low64(x: v128, y: v128): v128 { return v128.shuffle<u64>(x, y, 0, 2); }
// @ts-ignore: decorator
@inline function high64(x: v128, y: v128): v128 { return v128.shuffle<u64>(x, y, 1, 3); }

/** The digits of the lower and of the upper half of every byte. */
// @ts-ignore: decorator
@inline function lowDigits(x: v128): v128 { return i8x16.swizzle(v128.load(DIGITS), v128.and(x, i8x16.splat(15))); }
// @ts-ignore: decorator
@inline function highDigits(x: v128): v128 { return lowDigits(i16x8.shr_u(x, 4)); }
/**
 * Every second byte before the first, in the order in which a word has them in memory. As a shuffle, V8 takes 4
 * instructions.
 */
// @ts-ignore: decorator
@inline function swapped(x: v128): v128 {
  return i8x16.swizzle(x, i8x16(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
}

/** Two words of hex digits: bytes of `x` and `y` alternate, four lanes of the first word, four of the second. */
// @ts-ignore: decorator
@inline function storeWords(x: v128, y: v128, to: usize): void {
  v128.store(to, v128.shuffle<u8>(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
  v128.store(to, v128.shuffle<u8>(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), 16);
}

/** Eight words of hex digits from 16 bytes of every lane. */
function expandV1(from: usize, stride: usize, to: usize): void {
  const a = swapped(v128.load(from));
  const b = swapped(v128.load(from + stride));
  const c = swapped(v128.load(from + 2 * stride));
  const d = swapped(v128.load(from + 3 * stride));
  const ac = low16(a, c), bd = low16(b, d), AC = high16(a, c), BD = high16(b, d);
  let x = low16(ac, bd);
  storeWords(lowDigits(x), highDigits(x), to);
  x = high16(ac, bd);
  storeWords(lowDigits(x), highDigits(x), to + 32);
  x = low16(AC, BD);
  storeWords(lowDigits(x), highDigits(x), to + 64);
  x = high16(AC, BD);
  storeWords(lowDigits(x), highDigits(x), to + 96);
}

/**
 * Eight words of hex digits, one digit further on, as in version 2: in every word, the first and third digit are the
 * lower halves of the bytes one before those of the second and fourth.
 */
function expandV2(from: usize, stride: usize, to: usize): void {
  const a = swapped(v128.load(from));
  const b = swapped(v128.load(from + stride));
  const c = swapped(v128.load(from + 2 * stride));
  const d = swapped(v128.load(from + 3 * stride));
  const ac = low16(a, c), bd = low16(b, d), AC = high16(a, c), BD = high16(b, d);
  from--;
  const e = swapped(v128.load(from));
  const f = swapped(v128.load(from + stride));
  const g = swapped(v128.load(from + 2 * stride));
  const h = swapped(v128.load(from + 3 * stride));
  const eg = low16(e, g), fh = low16(f, h), EG = high16(e, g), FH = high16(f, h);
  storeWords(highDigits(low16(ac, bd)), lowDigits(low16(eg, fh)), to);
  storeWords(highDigits(high16(ac, bd)), lowDigits(high16(eg, fh)), to + 32);
  storeWords(highDigits(low16(AC, BD)), lowDigits(low16(EG, FH)), to + 64);
  storeWords(highDigits(high16(AC, BD)), lowDigits(high16(EG, FH)), to + 96);
}

/**
 * Expands 32 bytes of every lane of a group to a block of hex digits in WORDS. In version 2 the block begins with the
 * last digit of the byte before them.
 */
function expand(group: usize, from: usize, stride: usize, version: i32): void {
  const words = WORDS + group * SCHEDULE_BYTES;
  if (version == 1) {
    expandV1(from, stride, words);
    expandV1(from + 16, stride, words + 128);
  } else {
    expandV2(from, stride, words);
    expandV2(from + 16, stride, words + 128);
  }
}

/** Like `expand`, for a first block, which in version 2 begins with `domain` instead of the byte before. */
function expandFirst(group: usize, from: usize, stride: usize, version: i32, domain: i32): void {
  expand(group, from, stride, version);
  if (version == 1) return;
  const words = WORDS + group * SCHEDULE_BYTES;
  v128.store(words, v128.or(v128.and(v128.load(words), i32x4.splat(0xffffff)), i32x4.splat(domain << 24)));
}

/** Schedules of a group's four last blocks, chosen by the bits `mask` of their last bytes and laid side by side. */
function gather(group: usize, lastByte: usize, stride: usize, table: usize, mask: usize): void {
  let a = table + (load<u8>(lastByte) & mask) * SCHEDULE;
  let b = table + (load<u8>(lastByte + stride) & mask) * SCHEDULE;
  let c = table + (load<u8>(lastByte + 2 * stride) & mask) * SCHEDULE;
  let d = table + (load<u8>(lastByte + 3 * stride) & mask) * SCHEDULE;
  const gathered = GATHERED + group * SCHEDULE_BYTES;
  for (let to = gathered; to < gathered + SCHEDULE_BYTES; to += 64) {
    transpose(v128.load(a), v128.load(b), v128.load(c), v128.load(d), to, 16);
    a += 16;
    b += 16;
    c += 16;
    d += 16;
  }
}

/** Rows to columns: word i of all four goes to `to + i · step`. */
// @ts-ignore: decorator
@inline function transpose(a: v128, b: v128, c: v128, d: v128, to: usize, step: usize): void {
  const ab = low32(a, b), cd = low32(c, d), AB = high32(a, b), CD = high32(c, d);
  v128.store(to, low64(ab, cd));
  v128.store(to + step, high64(ab, cd));
  v128.store(to + 2 * step, low64(AB, CD));
  v128.store(to + 3 * step, high64(AB, CD));
}

/** A state word of every lane, big-endian. This is one instruction; as a shuffle it is 6. */
// @ts-ignore: decorator
@inline function bigEndian(group: usize, i: usize): v128 {
  return i8x16.swizzle(stateWord(group, i), i8x16(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
}

/** Compresses the last blocks and writes the digests; operands of `size` bytes lie at `from`. */
function finish(groups: usize, from: usize, size: usize, v1: usize, v2: usize, version: i32, to: usize): void {
  if (version == 1) {
    compressPrepared(groups, v1, v1);
  } else {
    for (let g: usize = 0; g < groups; g++) gather(g, from + (4 * g + 1) * size - 1, size, v2, 15);
    compressPrepared(groups, GATHERED, GATHERED + SCHEDULE_BYTES);
  }
  writeDigests(groups, to);
}

function writeDigests(groups: usize, to: usize): void {
  for (let g: usize = 0; g < groups; g++) {
    transpose(bigEndian(g, 0), bigEndian(g, 1), bigEndian(g, 2), bigEndian(g, 3), to, NODE);
    transpose(bigEndian(g, 4), bigEndian(g, 5), bigEndian(g, 6), bigEndian(g, 7), to + 16, NODE);
    to += 4 * NODE;
  }
}

/**
 * Number of groups in the next step. Five are faster as four and one: a group takes 985 ns, two 1815, a scalar node
 * 740.
 */
// @ts-ignore: decorator
@inline function groupsFor(count: i32): usize { return count > 5 ? 2 : 1; }

/** `Hash` of leaves; up to 64 bytes past the last result are overwritten too. Domain byte of version 2: 0x00. */
export function leaves(from: usize, to: usize, count: i32, version: i32): void {
  while (count > 1) {
    const groups = groupsFor(count);
    begin();
    for (let g: usize = 0; g < groups; g++) expandFirst(g, from + 4 * g * NODE, NODE, version, 0);
    compress(groups, WORDS);
    finish(groups, from, NODE, LEAF_V1_X4, LEAF_V2, version, to);
    from += 4 * groups * NODE;
    to += 4 * groups * NODE;
    count -= 4 * <i32>groups;
  }
  if (count == 1) leavesX1(from, to, 1, version);
}

/** `Hash` of nodes; up to 64 bytes past the last result are overwritten too. Domain byte of version 2: 0x01. */
export function nodes(from: usize, to: usize, count: i32, version: i32): void {
  while (count > 1) {
    const groups = groupsFor(count);
    begin();
    for (let g: usize = 0; g < groups; g++) expandFirst(g, from + 4 * g * PAIR, PAIR, version, 1);
    compress(groups, WORDS);
    for (let g: usize = 0; g < groups; g++) expand(g, from + 4 * g * PAIR + NODE, PAIR, version);
    compress(groups, WORDS);
    finish(groups, from, PAIR, NODE_V1_X4, NODE_V2, version, to);
    from += 4 * groups * PAIR;
    to += 4 * groups * NODE;
    count -= 4 * <i32>groups;
  }
  if (count == 1) nodesX1(from, to, 1, version);
}

/**
 * The first block of a node of RFC 6962 in every lane of a group, in WORDS: 0x01, then all bytes of the operand but the
 * last. So each load begins one byte before its words.
 */
function expandRfc6962(group: usize, from: usize): void {
  const words = WORDS + group * SCHEDULE_BYTES;
  const order = i8x16(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
  from--;
  for (let to = words; to < words + 256; to += 64) {
    transpose(
      i8x16.swizzle(v128.load(from), order),
      i8x16.swizzle(v128.load(from + PAIR), order),
      i8x16.swizzle(v128.load(from + 2 * PAIR), order),
      i8x16.swizzle(v128.load(from + 3 * PAIR), order),
      to,
      16,
    );
    from += 16;
  }
  v128.store(words, v128.or(v128.and(v128.load(words), i32x4.splat(0xffffff)), i32x4.splat(0x01000000)));
}

/** Nodes of RFC 6962, 2.1; up to 64 bytes past the last result are overwritten too. */
export function rfc6962Nodes(from: usize, to: usize, count: i32): void {
  while (count > 1) {
    const groups = groupsFor(count);
    begin();
    for (let g: usize = 0; g < groups; g++) expandRfc6962(g, from + 4 * g * PAIR);
    compress(groups, WORDS);
    for (let g: usize = 0; g < groups; g++) gather(g, from + (4 * g + 1) * PAIR - 1, PAIR, NODE_RFC6962, 255);
    compressPrepared(groups, GATHERED, GATHERED + SCHEDULE_BYTES);
    writeDigests(groups, to);
    from += 4 * groups * PAIR;
    to += 4 * groups * NODE;
    count -= 4 * <i32>groups;
  }
  if (count == 1) rfc6962NodesX1(from, to, 1);
}
