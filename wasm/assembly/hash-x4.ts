// Leaves and nodes in groups of four, one in each 32-bit lane, two groups at a time. Hex digits exist only here,
// between load and compression.
import { DIGITS, INITIAL } from "./constants";
import { leaves as leavesX1, nodes as nodesX1 } from "./hash-x1";
import { NODE, PAIR } from "./layout";
import { LEAF_V1, LEAF_V2, NODE_V1, NODE_V2, SCHEDULE } from "./padding";
import { compress, compressPrepared, SCHEDULE_BYTES, STATE_BYTES } from "./rounds-x4";

/** The two groups' states, blocks and, in version 2, the last word before the block, still to give its last byte. */
const STATE: usize = memory.data(2 * 128, 16);
const WORDS: usize = memory.data(2 * 1024, 16);
const CARRY: usize = memory.data(2 * 16, 16);

/** The schedule of the last block: version 1's, the same in all lanes, or gathered for four digits of version 2. */
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

/** Two words of hex digits from `x`, which has two bytes of every lane for the first word, then two for the second. */
// @ts-ignore: decorator
@inline function expandWords(x: v128, to: usize): void {
  const digits = v128.load(DIGITS);
  const nibble = i8x16.splat(15);
  const swapped = v128.shuffle<u8>(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  const low = i8x16.swizzle(digits, v128.and(swapped, nibble));
  const high = i8x16.swizzle(digits, v128.and(i16x8.shr_u(swapped, 4), nibble));
  v128.store(to, v128.shuffle<u8>(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
  v128.store(to, v128.shuffle<u8>(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), 16);
}

/** Eight words of hex digits from 16 bytes of every lane. */
function expandHalf(from: usize, stride: usize, to: usize): void {
  const a = v128.load(from);
  const b = v128.load(from + stride);
  const c = v128.load(from + 2 * stride);
  const d = v128.load(from + 3 * stride);
  const ac = low16(a, c), bd = low16(b, d);
  expandWords(low16(ac, bd), to);
  expandWords(high16(ac, bd), to + 32);
  const AC = high16(a, c), BD = high16(b, d);
  expandWords(low16(AC, BD), to + 64);
  expandWords(high16(AC, BD), to + 96);
}

/**
 * Expands 32 bytes of every lane of a group to a block of hex digits in WORDS. In version 2 the operand is one byte
 * further on: the last word before the block gives its last byte to the front, and the block's own waits in CARRY.
 */
function expand(group: usize, from: usize, stride: usize, version: i32): void {
  const words = WORDS + group * SCHEDULE_BYTES;
  expandHalf(from, stride, words);
  expandHalf(from + 16, stride, words + 128);
  if (version == 1) return;
  let carry = v128.load(CARRY + (group << 4));
  for (let at = words; at < words + 256; at += 16) {
    const word = v128.load(at);
    v128.store(at, v128.or(i32x4.shl(carry, 24), i32x4.shr_u(word, 8)));
    carry = word;
  }
  v128.store(CARRY + (group << 4), carry);
}

/** Schedules of a group's four last blocks, chosen by their last digits and laid side by side. */
function gather(group: usize, lastByte: usize, stride: usize, table: usize): void {
  let a = table + (load<u8>(lastByte) & 15) * SCHEDULE;
  let b = table + (load<u8>(lastByte + stride) & 15) * SCHEDULE;
  let c = table + (load<u8>(lastByte + 2 * stride) & 15) * SCHEDULE;
  let d = table + (load<u8>(lastByte + 3 * stride) & 15) * SCHEDULE;
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

/** Begins the hashes of both groups; `domain` is the first byte of version 2. */
function reset(domain: i32): void {
  for (let i: usize = 0; i < 8; i++) {
    const word = v128.load32_splat(INITIAL + (i << 2));
    v128.store(STATE + (i << 4), word);
    v128.store(STATE + STATE_BYTES + (i << 4), word);
  }
  v128.store(CARRY, i32x4.splat(domain));
  v128.store(CARRY, i32x4.splat(domain), 16);
}

/** A state word of every lane, big-endian. */
// @ts-ignore: decorator
@inline function bigEndian(at: usize): v128 {
  const x = v128.load(at);
  return v128.shuffle<u8>(x, x, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
}

/** Compresses the last blocks and writes the digests; operands of `size` bytes lie at `from`. */
function finish(groups: usize, from: usize, size: usize, v1: usize, v2: usize, version: i32, to: usize): void {
  if (version == 1) {
    compressPrepared(groups, STATE, v1, v1);
  } else {
    for (let g: usize = 0; g < groups; g++) gather(g, from + (4 * g + 1) * size - 1, size, v2);
    compressPrepared(groups, STATE, GATHERED, GATHERED + SCHEDULE_BYTES);
  }
  for (let s = STATE; s < STATE + groups * STATE_BYTES; s += STATE_BYTES) {
    transpose(bigEndian(s), bigEndian(s + 16), bigEndian(s + 32), bigEndian(s + 48), to, NODE);
    transpose(bigEndian(s + 64), bigEndian(s + 80), bigEndian(s + 96), bigEndian(s + 112), to + 16, NODE);
    to += 4 * NODE;
  }
}

/**
 * Groups that the next step takes. Five are faster as four and one: a group takes 750 ns, two 1330, a scalar node 460.
 */
// @ts-ignore: decorator
@inline function groupsFor(count: i32): usize { return count > 5 ? 2 : 1; }

/** `Hash` of leaves; up to 64 bytes past the last result are overwritten too. Domain byte of version 2: 0x00. */
export function leaves(from: usize, to: usize, count: i32, version: i32): void {
  while (count > 1) {
    const groups = groupsFor(count);
    reset(0);
    for (let g: usize = 0; g < groups; g++) expand(g, from + 4 * g * NODE, NODE, version);
    compress(groups, STATE, WORDS);
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
    reset(1);
    for (let g: usize = 0; g < groups; g++) expand(g, from + 4 * g * PAIR, PAIR, version);
    compress(groups, STATE, WORDS);
    for (let g: usize = 0; g < groups; g++) expand(g, from + 4 * g * PAIR + NODE, PAIR, version);
    compress(groups, STATE, WORDS);
    finish(groups, from, PAIR, NODE_V1_X4, NODE_V2, version, to);
    from += 4 * groups * PAIR;
    to += 4 * groups * NODE;
    count -= 4 * <i32>groups;
  }
  if (count == 1) nodesX1(from, to, 1, version);
}
