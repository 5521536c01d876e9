/** The path from a leaf to the root, one level at a time: the computation that an inclusion proof asks for. */
import { fromHex, toHex, utf8 } from "../../../../engine/verify/bytes/encoding.js";
import { height, leafHash, nodeHash, rfc6962, width } from "../../../../engine/verify/index.js";
import type { Rooted, Way } from "../../state/source.js";

/** One level of the path: the computed node, and the node with which it is hashed. */
export interface Rung {
  readonly level: number;
  /** Index of the node on the path, from the left. */
  readonly index: number;
  /** Lower-case hex. */
  readonly hash: string;
  /** The root has none. A node without a neighbour is hashed with itself (`self`), or goes up as it is (`none`, by RFC 6962). */
  readonly partner: {
    readonly hash: string;
    readonly side: "left" | "right";
    readonly from: "proof" | "self" | "none";
  } | null;
}

/** A path that has been computed up to its last level. */
export interface Ascent {
  readonly rungs: readonly Rung[];
  /** Number of hashes of the audit path that were used. */
  readonly used: number;
  readonly isComplete: boolean;
}

/** The leaf: the first level. */
export function atLeaf(proof: Way, head: Rooted): Ascent {
  const { tree_version: version } = head;
  const hash =
    version === "rfc6962" ? toHex(rfc6962.leafHash(utf8(proof.entry_hash))) : leafHash(proof.entry_hash, version);
  return extended({ rungs: [], used: 0, isComplete: false }, { level: 0, index: proof.leaf_index, hash }, proof, head);
}

/**
 * One level further up. The client has verified the whole proof before; here each hash is computed again to be shown.
 */
export function climb(ascent: Ascent, proof: Way, head: Rooted): Ascent {
  const rung = ascent.rungs.at(-1)!;
  if (!rung.partner) return ascent;
  const { partner } = rung;
  const { tree_version: version } = head;
  const [left, right] = partner.side === "left" ? [partner.hash, rung.hash] : [rung.hash, partner.hash];
  const hash =
    version !== "rfc6962"
      ? nodeHash(left, right, version)
      : partner.from === "none"
        ? rung.hash
        : toHex(rfc6962.nodeHash(fromHex(left), fromHex(right)));
  return extended(ascent, { level: rung.level + 1, index: Math.floor(rung.index / 2), hash }, proof, head);
}

function extended(
  ascent: Ascent,
  node: Omit<Rung, "partner">,
  { audit_path }: Way,
  { tree_size, tree_version }: Rooted,
): Ascent {
  const { level, index, hash } = node;
  if (level === height(tree_size))
    return { rungs: [...ascent.rungs, { ...node, partner: null }], used: ascent.used, isComplete: true };
  const isRight = index % 2 === 1;
  const isAlone = !isRight && index + 1 >= width(level, tree_size);
  const partner = isAlone
    ? ({ hash, side: "right", from: tree_version === "rfc6962" ? "none" : "self" } as const)
    : ({ hash: audit_path[ascent.used]!, side: isRight ? "left" : "right", from: "proof" } as const);
  return { rungs: [...ascent.rungs, { ...node, partner }], used: ascent.used + (isAlone ? 0 : 1), isComplete: false };
}
