// Appends leaves to a tree known by its peaks alone, and computes the root of every size on the way.
//
// Level by level, across all the sizes at once, so that the lanes stay full. A level's row is the old peak, if the old
// size has one there, and the new complete nodes after it: the row begins at an even index, so the parents are the
// hashes of its plain pairs. For each size the last node of the level is held beside the row: while it is complete it
// is one of the row; once padded, its parent is the hash of it and its left sibling, a node of the row, or of it and
// itself.
import { Hash, INPUT, NODE, OUTPUT, PAIR } from "./layout";

/** Maximum number of leaves in one call: its working memory is 300 KB, which fits into a second-level cache. */
export const EXTEND_CAPACITY: i32 = 1024;

/** Sizes stay below 2^53, so levels 0 … 53. */
const LEVELS: usize = 54;

/** The peaks, packed, lowest level first: of the old size before the call, of the new one after it. */
export const PEAKS: usize = memory.data(54 * 32, 16);
/** The new leaf hashes. The slot before is the row's, for the old peak. */
export const LEAVES: usize = memory.data(32 + 1024 * 32 + 128, 16) + NODE;
/** The new complete nodes of levels 8, 16, …, one level after the other: at most 4 of level 8, then one a level. */
export const RUNS: usize = memory.data(16 * 32, 16);

/** Peaks by level. */
const FRONTIER: usize = memory.data(54 * 32, 16);
/** Rows of the odd and of the even levels from 1 on; hashes of padded nodes pass through behind the row's end. */
const ODD: usize = memory.data(32 + 1536 * 32 + 128, 16) + NODE;
const EVEN: usize = memory.data(32 + 1536 * 32 + 128, 16) + NODE;
/** Operands of one level: pairs of the row, then those of the padded nodes. */
const OPERANDS: usize = memory.data(1536 * 64 + 256, 16);

// @ts-ignore: decorator
@inline function copyNode(to: usize, from: usize): void {
  for (let i: usize = 0; i < NODE; i += 8) store<u64>(to + i, load<u64>(from + i));
}

function unpackPeaks(size: u64): void {
  let from = PEAKS;
  for (let level: usize = 0; level < LEVELS; level++) {
    if (!((size >> level) & 1)) continue;
    copyNode(FRONTIER + level * NODE, from);
    from += NODE;
  }
}

function packPeaks(size: u64): void {
  let to = PEAKS;
  for (let level: usize = 0; level < LEVELS; level++) {
    if (!((size >> level) & 1)) continue;
    copyNode(to, FRONTIER + level * NODE);
    to += NODE;
  }
}

/** Whether the tree of `size` leaves has a node above its last node of `level`. */
// @ts-ignore: decorator
@inline function hasParent(size: u64, level: u64): bool {
  return (size - 1) >> level != 0;
}

/** Whether the last node of `level` is complete. */
// @ts-ignore: decorator
@inline function isComplete(size: u64, level: u64): bool {
  return (size & (((<u64>1) << level) - 1)) == 0;
}

/**
 * Hashes `count` digests from INPUT into leaves and appends them to the tree of `oldSize` leaves. PEAKS is replaced.
 * LEAVES and RUNS get the new complete nodes, and OUTPUT, if requested, the root of every size.
 */
export function extendTree(oldSize: f64, count: i32, version: i32, withRoots: bool, leaves: Hash, nodes: Hash): void {
  const before = <u64>oldSize;
  const after = before + count;
  const sizes = withRoots ? count : 0;
  let run = RUNS;

  unpackPeaks(before);
  leaves(INPUT, LEAVES, count, version);
  if (withRoots) memory.copy(OUTPUT, LEAVES, <usize>count * NODE);

  let fresh = LEAVES;
  for (let level: u64 = 0; ; level++) {
    const added = <usize>((after >> level) - (before >> level));
    if (added == 0 && !(withRoots && hasParent(after, level))) break;

    const peak = FRONTIER + <usize>level * NODE;
    const hasPeak = <usize>((before >> level) & 1);
    const row = fresh - hasPeak * NODE;
    if (hasPeak) copyNode(row, peak);
    if ((after >> level) & 1) copyNode(peak, fresh + (added - 1) * NODE);
    if (level != 0 && (level & 7) == 0) {
      memory.copy(run, fresh, added * NODE);
      run += added * NODE;
    }

    const parents = (added + hasPeak) >> 1;
    const above = level & 1 ? EVEN : ODD;
    if (withRoots) {
      memory.copy(OPERANDS, row, parents * PAIR);
      const padded = writePadded(before, sizes, level, row, OPERANDS + parents * PAIR);
      nodes(OPERANDS, above, <i32>parents + padded, version);
      readParents(before, sizes, level, above, above + parents * NODE);
    } else {
      nodes(row, above, <i32>parents, version);
    }
    fresh = above;
  }
  packPeaks(after);
}

/** Writes the operands of every size whose parent of the last node is padded, and returns their number. */
function writePadded(before: u64, sizes: i32, level: u64, row: usize, to: usize): i32 {
  const first = (before >> (level + 1)) << 1;
  let padded = 0;
  for (let i = 0; i < sizes; i++) {
    const size = before + i + 1;
    if (!hasParent(size, level) || isComplete(size, level + 1)) continue;
    const last = OUTPUT + <usize>i * NODE;
    const index = (size - 1) >> level;
    copyNode(to, index & 1 ? row + <usize>(index - 1 - first) * NODE : last);
    copyNode(to + NODE, last);
    to += PAIR;
    padded++;
  }
  return padded;
}

/** Moves every size one level up: its last node becomes the next padded node, or a complete node of the row above. */
function readParents(before: u64, sizes: i32, level: u64, fresh: usize, padded: usize): void {
  const first = before >> (level + 1);
  for (let i = 0; i < sizes; i++) {
    const size = before + i + 1;
    if (!hasParent(size, level)) continue;
    const last = OUTPUT + <usize>i * NODE;
    if (isComplete(size, level + 1)) {
      copyNode(last, fresh + <usize>(((size - 1) >> (level + 1)) - first) * NODE);
    } else {
      copyNode(last, padded);
      padded += NODE;
    }
  }
}
