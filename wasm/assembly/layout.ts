// Where the kernel meets JavaScript in WebAssembly memory. Every address is static: memory has one size from start to
// end, so no input, however large, makes it grow; what does not fit into INPUT comes in several calls.

/** Nodes that INPUT and OUTPUT hold. */
export const CAPACITY: i32 = 4096;

/** What JavaScript writes before a call and reads after it, with slack for the unused lanes of the last group. */
export const INPUT: usize = memory.data(4096 * 32 + 256, 16);
export const OUTPUT: usize = memory.data(4096 * 32 + 256, 16);

/** Bytes of a node or digest. */
export const NODE: usize = 32;
/** Bytes of two sibling nodes, the operand of their parent. */
export const PAIR: usize = 64;

/**
 * Hashes `count` operands (digests for leaves, pairs for nodes) that lie one after the other, to `to`, 32 bytes each.
 */
export type Hash = (from: usize, to: usize, count: i32, version: i32) => void;
