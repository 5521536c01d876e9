/**
 * Roots, inclusion proofs and consistency proofs for any size and either tree version, computed from complete nodes
 * only. Their form: docs/spec §3.3 and §3.4.
 */
import { CairnlogError } from "../../base/error.js";
import { coverPositions, peakPositions, type TreeVersion } from "../../verify/tree/merkle.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { hex, type Tree } from "./tree.js";

/** Root of the first `size` leaves, 32 bytes; `size` >= 1. */
export const rootAt = (tree: Tree, size: number): Uint8Array => tree.rightEdge(size).root;

/** A consistency proof as it is served (docs/spec §3.4). */
export interface ConsistencyProof {
  readonly from_size: number;
  readonly to_size: number;
  readonly tree_version: TreeVersion;
  readonly from_root: string;
  readonly to_root: string;
  readonly peaks: readonly string[];
  readonly extension: readonly string[];
  readonly from_sth: TreeHead | null;
  readonly to_sth: TreeHead | null;
}

interface InclusionPath {
  readonly leafHash: string;
  readonly rootHash: string;
  /** Hex, leaf to root, real siblings only. */
  readonly auditPath: string[];
}

/** @throws CairnlogError `invalid-input` unless 0 <= leafIndex < size <= tree size */
export function inclusionPath(tree: Tree, leafIndex: number, size: number): InclusionPath {
  checkLeaf(tree, leafIndex, size);
  const auditPath = siblings(tree, leafIndex, size, 0, Number.POSITIVE_INFINITY);
  return { leafHash: tree.nodeHex(0, leafIndex), rootHash: tree.rightEdge(size).rootHex, auditPath };
}

/** @throws CairnlogError `invalid-input` unless 0 <= leafIndex < size <= tree size */
export function checkLeaf(tree: Tree, leafIndex: number, size: number): void {
  if (!(leafIndex >= 0 && leafIndex < size && size <= tree.size))
    throw new CairnlogError("invalid-input", `A tree of ${size} leaves has no leaf ${leafIndex}.`);
}

/** The siblings on an audit path from level `from` up to below level `to`. Those from level 8 up are the same for a tile. */
export function siblings(tree: Tree, leafIndex: number, size: number, from: number, to: number): string[] {
  const { padded } = tree.rightEdge(size);
  const path: string[] = [];
  let index = Math.floor(leafIndex / 2 ** from);
  // Number of nodes on the level: all of them, and the complete ones.
  let nodes = Math.ceil(size / 2 ** from);
  let complete = Math.floor(size / 2 ** from);
  for (let level = from; nodes > 1 && level < to; level++) {
    const sibling = index % 2 === 1 ? index - 1 : index + 1;
    if (sibling < nodes) path.push(sibling < complete ? tree.nodeHex(level, sibling) : hex(padded.get(level)!));
    index = Math.floor(index / 2);
    nodes = Math.ceil(nodes / 2);
    complete = Math.floor(complete / 2);
  }
  return path;
}

interface ConsistencyPath {
  readonly fromRoot: string;
  readonly toRoot: string;
  /** Roots of the complete subtrees of the older size, largest first, hex. */
  readonly peaks: string[];
  /** The fewest complete subtrees that cover the leaves in between, left to right, hex. */
  readonly extension: string[];
}

/** @throws CairnlogError `invalid-input` unless 1 <= from <= to <= tree size */
export function consistencyPath(tree: Tree, from: number, to: number): ConsistencyPath {
  if (!(from >= 1 && from <= to && to <= tree.size))
    throw new CairnlogError("invalid-input", `There is no consistency proof from size ${from} to size ${to}.`);
  const nodes = (positions: readonly { level: number; index: number }[]) =>
    positions.map(({ level, index }) => tree.nodeHex(level, index));
  return {
    fromRoot: tree.rightEdge(from).rootHex,
    toRoot: tree.rightEdge(to).rootHex,
    peaks: nodes(peakPositions(from)),
    extension: nodes(coverPositions(from, to)),
  };
}
