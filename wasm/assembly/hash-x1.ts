// Leaves and nodes one by one, in plain 32-bit arithmetic. The scalar kernel uses only this; the SIMD kernel uses it
// for single nodes that are left over.
import { DIGITS, INITIAL } from "./constants";
import { NODE, PAIR } from "./layout";
import { LEAF_V1, LEAF_V2, NODE_RFC6962, NODE_V1, NODE_V2, SCHEDULE } from "./padding";
import { compress, compressPrepared } from "./rounds-x1";

const STATE: usize = memory.data(32, 16);
const WORDS: usize = memory.data(256, 16);

/** The two hex digits of every byte, as the high and low byte of 16 bits. */
const HEX: usize = memory.data(512, 16);
for (let byte: usize = 0; byte < 256; byte++) {
  store<u16>(HEX + (byte << 1), (<u16>load<u8>(DIGITS + (byte >> 4)) << 8) | load<u8>(DIGITS + (byte & 15)));
}

/**
 * Expands 32 bytes to a block of hex digits in WORDS. In version 2 the operand is one byte further on: `carry`, the
 * last word before the block, gives its last byte to the front. Returns the last word before that shift.
 */
function expand(from: usize, carry: u32, version: i32): u32 {
  let last = carry;
  for (let i: usize = 0; i < 16; i++) {
    const bytes = load<u16>(from + (i << 1));
    const word = (<u32>load<u16>(HEX + ((bytes & 255) << 1)) << 16) | load<u16>(HEX + ((bytes >> 8) << 1));
    store<u32>(WORDS + (i << 2), version == 1 ? word : (last << 24) | (word >> 8));
    last = word;
  }
  return last;
}

function reset(): void {
  for (let i: usize = 0; i < 32; i += 8) store<u64>(STATE + i, load<u64>(INITIAL + i));
}

/** Writes the state, big-endian. */
export function writeDigest(state: usize, to: usize): void {
  for (let i: usize = 0; i < 32; i += 4) store<u32>(to + i, bswap(load<u32>(state + i)));
}

function finish(lastByte: usize, v1: usize, v2: usize, version: i32, to: usize): void {
  compressPrepared(STATE, version == 1 ? v1 : v2 + (load<u8>(lastByte) & 15) * SCHEDULE);
  writeDigest(STATE, to);
}

/** `Hash` of leaves. Domain byte of version 2: 0x00. */
export function leaves(from: usize, to: usize, count: i32, version: i32): void {
  for (; count > 0; count--) {
    reset();
    expand(from, 0, version);
    compress(STATE, WORDS);
    finish(from + NODE - 1, LEAF_V1, LEAF_V2, version, to);
    from += NODE;
    to += NODE;
  }
}

/** `Hash` of nodes. Domain byte of version 2: 0x01. */
export function nodes(from: usize, to: usize, count: i32, version: i32): void {
  for (; count > 0; count--) {
    reset();
    const carry = expand(from, 1, version);
    compress(STATE, WORDS);
    expand(from + NODE, carry, version);
    compress(STATE, WORDS);
    finish(from + PAIR - 1, NODE_V1, NODE_V2, version, to);
    from += PAIR;
    to += NODE;
  }
}

/** Nodes of RFC 6962, 2.1: the hash of 0x01 and of the 64 bytes of both children, as bytes. */
export function rfc6962Nodes(from: usize, to: usize, count: i32): void {
  for (; count > 0; count--) {
    reset();
    store<u32>(WORDS, (bswap(load<u32>(from)) >> 8) | 0x01000000);
    for (let i: usize = 4; i < 64; i += 4) store<u32>(WORDS + i, bswap(load<u32>(from + i - 1)));
    compress(STATE, WORDS);
    compressPrepared(STATE, NODE_RFC6962 + load<u8>(from + PAIR - 1) * SCHEDULE);
    writeDigest(STATE, to);
    from += PAIR;
    to += NODE;
  }
}
