// The last block of a leaf or node is padding: all of it in version 1, all but the last hex digit in version 2, all but
// the last byte in RFC 6962. So 1, 16 and 256 such blocks exist, and their schedules, round constants added, are made
// once, at instantiation.
import { DIGITS, K } from "./constants";
import { sigma0, sigma1 } from "./rounds-x1";

/** Bytes of one prepared schedule: 64 words. */
export const SCHEDULE: usize = 256;

/** Version 1: one schedule each. */
export const LEAF_V1: usize = memory.data(256, 16);
export const NODE_V1: usize = memory.data(256, 16);
/** Version 2: sixteen schedules each, by the last hex digit of the operand. */
export const LEAF_V2: usize = memory.data(16 * 256, 16);
export const NODE_V2: usize = memory.data(16 * 256, 16);
/** RFC 6962: 256 schedules for nodes, by the last byte of the operand. */
export const NODE_RFC6962: usize = memory.data(256 * 256, 16);

/** Writes the schedule of the block that has `first`, then zeros, then the message length in bits. */
function prepare(first: u32, bits: u32, to: usize): void {
  memory.fill(to, 0, 64);
  store<u32>(to, first);
  store<u32>(to, bits, 60);
  for (let w = to; w < to + 192; w += 4) {
    store<u32>(w, load<u32>(w) + sigma0(load<u32>(w, 4)) + load<u32>(w, 36) + sigma1(load<u32>(w, 56)), 64);
  }
  for (let t: usize = 0; t < SCHEDULE; t += 4) store<u32>(to + t, load<u32>(to + t) + load<u32>(K + t));
}

prepare(0x80000000, 64 * 8, LEAF_V1);
prepare(0x80000000, 128 * 8, NODE_V1);
for (let digit: usize = 0; digit < 16; digit++) {
  const first = ((<u32>load<u8>(DIGITS + digit)) << 24) | 0x00800000;
  prepare(first, 65 * 8, LEAF_V2 + digit * SCHEDULE);
  prepare(first, 129 * 8, NODE_V2 + digit * SCHEDULE);
}
for (let byte: usize = 0; byte < 256; byte++) {
  prepare((<u32>byte << 24) | 0x00800000, 65 * 8, NODE_RFC6962 + byte * SCHEDULE);
}
