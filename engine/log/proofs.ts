/**
 * Roots, inclusion proofs and consistency proofs of any size under either lens, from complete nodes alone.
 * Shapes: `design.md` §3. Padding ("the last node, paired with itself") exists only here and in the verifier.
 */
import { kernel } from "../../wasm/index.js";
import { CairnlogError } from "../error.js";
import { coverPositions, height, peakPositions, width } from "../verify/merkle.js";
import type { Tree } from "./tree.js";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex");

/**
 * The last node of every level of the tree of `size` leaves that is *not* complete, by level, up to the root.
 * Empty for a power of two, whose root is complete.
 */
function paddedNodes(tree: Tree, size: number): Map<number, Uint8Array> {
  const padded = new Map<number, Uint8Array>();
  let { level, index } = peakPositions(size).at(-1)!;
  let last = tree.node(level, index);
  for (const top = height(size); level < top; level++) {
    const isRight = index % 2 === 1;
    last = kernel.node(isRight ? tree.node(level, index - 1) : last, last, tree.version);
    index = Math.floor(index / 2);
    padded.set(level + 1, last);
  }
  return padded;
}

/** Root of the first `size` leaves, 32 bytes; `size` >= 1. */
export function rootAt(tree: Tree, size: number): Uint8Array {
  return paddedNodes(tree, size).get(height(size)) ?? tree.node(height(size), 0);
}

export interface InclusionPath {
  readonly leafHash: string;
  readonly rootHash: string;
  /** Hex, leaf to root, real siblings only. */
  readonly auditPath: string[];
}

/** @throws CairnlogError `invalid-input` unless 0 <= leafIndex < size <= tree size */
export function inclusionPath(tree: Tree, leafIndex: number, size: number): InclusionPath {
  if (!(leafIndex >= 0 && leafIndex < size && size <= tree.size))
    throw new CairnlogError("invalid-input", `A tree of ${size} leaves has no leaf ${leafIndex}.`);
  const padded = paddedNodes(tree, size);
  const auditPath: string[] = [];
  let index = leafIndex;
  for (let level = 0; level < height(size); level++) {
    const sibling = index % 2 === 1 ? index - 1 : index + 1;
    const nodes = width(level, size);
    if (sibling < nodes) {
      const isPadded = sibling === nodes - 1 && (sibling + 1) * 2 ** level > size;
      auditPath.push(hex(isPadded ? padded.get(level)! : tree.node(level, sibling)));
    }
    index = Math.floor(index / 2);
  }
  const root = padded.get(height(size)) ?? tree.node(height(size), 0);
  return { leafHash: hex(tree.node(0, leafIndex)), rootHash: hex(root), auditPath };
}

export interface ConsistencyPath {
  readonly fromRoot: string;
  readonly toRoot: string;
  /** Roots of the complete subtrees of the older size, largest first, hex. */
  readonly peaks: string[];
  /** Least cover of the leaves in between by complete subtrees, left to right, hex. */
  readonly extension: string[];
}

/** @throws CairnlogError `invalid-input` unless 1 <= from <= to <= tree size */
export function consistencyPath(tree: Tree, from: number, to: number): ConsistencyPath {
  if (!(from >= 1 && from <= to && to <= tree.size))
    throw new CairnlogError("invalid-input", `There is no consistency proof from size ${from} to size ${to}.`);
  const nodes = (positions: readonly { level: number; index: number }[]) =>
    positions.map(({ level, index }) => hex(tree.node(level, index)));
  return {
    fromRoot: hex(rootAt(tree, from)),
    toRoot: hex(rootAt(tree, to)),
    peaks: nodes(peakPositions(from)),
    extension: nodes(coverPositions(from, to)),
  };
}
