/** The path from a leaf to the root, one level at a time: the computation that an inclusion proof asks for. */
import {
  height,
  type InclusionProof,
  leafHash,
  nodeHash,
  type TreeHead,
  type TreeVersion,
  width,
} from "../../../../engine/verify/index.js";

/** One level of the path: the computed node, and the node with which it is hashed. */
export interface Rung {
  readonly level: number;
  /** Index of the node on the path, from the left. */
  readonly index: number;
  /** Lower-case hex. */
  readonly hash: string;
  /** The root has none. `self`: the node has no neighbour, so it is hashed with itself. */
  readonly partner: { readonly hash: string; readonly side: "left" | "right"; readonly from: "proof" | "self" } | null;
}

/** A path that has been computed up to its last level. */
export interface Ascent {
  readonly rungs: readonly Rung[];
  /** Number of hashes of the audit path that were used. */
  readonly used: number;
  readonly isComplete: boolean;
}

/** The leaf: the first level. */
export function begin(proof: InclusionProof, head: TreeHead): Ascent {
  const hash = leafHash(proof.entry_hash, head.tree_version);
  return extended({ rungs: [], used: 0, isComplete: false }, { level: 0, index: proof.leaf_index, hash }, proof, head);
}

/**
 * One level further up. The client has verified the whole proof before; here each hash is computed again to be shown.
 */
export function climb(ascent: Ascent, proof: InclusionProof, head: TreeHead): Ascent {
  const rung = ascent.rungs.at(-1)!;
  if (!rung.partner) return ascent;
  const { partner } = rung;
  const version: TreeVersion = head.tree_version;
  const hash =
    partner.side === "left" ? nodeHash(partner.hash, rung.hash, version) : nodeHash(rung.hash, partner.hash, version);
  return extended(ascent, { level: rung.level + 1, index: Math.floor(rung.index / 2), hash }, proof, head);
}

function extended(
  ascent: Ascent,
  node: Omit<Rung, "partner">,
  { audit_path }: InclusionProof,
  { tree_size }: TreeHead,
): Ascent {
  const { level, index, hash } = node;
  if (level === height(tree_size))
    return { rungs: [...ascent.rungs, { ...node, partner: null }], used: ascent.used, isComplete: true };
  const isRight = index % 2 === 1;
  const isAlone = !isRight && index + 1 >= width(level, tree_size);
  const partner = isAlone
    ? ({ hash, side: "right", from: "self" } as const)
    : ({ hash: audit_path[ascent.used]!, side: isRight ? "left" : "right", from: "proof" } as const);
  return { rungs: [...ascent.rungs, { ...node, partner }], used: ascent.used + (isAlone ? 0 : 1), isComplete: false };
}
