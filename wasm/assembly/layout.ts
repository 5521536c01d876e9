// The memory that the kernel shares with JavaScript. Every address is static: memory has one size from start to end, so
// no input, however large, makes it grow. Inputs that do not fit into INPUT come in several calls.

/** Number of nodes that fit into INPUT and OUTPUT. */
export const CAPACITY: i32 = 4096;

/**
 * JavaScript writes INPUT before a call and reads OUTPUT after it. Both have space for the unused lanes of the last
 * group.
 */
export const INPUT: usize = memory.data(4096 * 32 + 256, 16);
export const OUTPUT: usize = memory.data(4096 * 32 + 256, 16);

/** Bytes of a node or digest. */
export const NODE: usize = 32;
/** Bytes of two sibling nodes, the operand of their parent. */
export const PAIR: usize = 64;

/** Hashes `count` consecutive operands (digests for leaves, pairs for nodes), to `to`, 32 bytes each. */
export type Hash = (from: usize, to: usize, count: i32, version: i32) => void;
