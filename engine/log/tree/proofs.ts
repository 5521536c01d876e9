/**
 * Roots, inclusion proofs and consistency proofs for any size and either tree version, computed from complete nodes
 * only. Their form: docs/spec §3.3 and §3.4. And a head that is signed on demand.
 */
import { CairnlogError } from "../../base/error.js";
import type { ServerKey } from "../../crypto/keys/spki.js";
import { type Signer, signatures } from "../../crypto/signer/operator-key.js";
import { HASH } from "../../store/schema/schema.js";
import { coverPositions, peakPositions, type TreeVersion } from "../../verify/tree/merkle.js";
import { type TreeHead, treeHeadMessage } from "../../verify/tree/treehead.js";
import { hex, nodesAt, TILE_WIDTH, type Tree } from "./tree.js";

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
  if (!(Number.isInteger(leafIndex) && leafIndex >= 0 && leafIndex < size && size <= tree.size))
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
  if (!(Number.isInteger(from) && Number.isInteger(to) && from >= 1 && from <= to && to <= tree.size))
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

// Tiles as mirrors fetch them, limited to the published size. The trees in memory are ahead of the disk. A hash of an
// entry that is not on disk yet must not be shown, because the entry might never exist.

/** Selects hashes of a tile. */
interface TileRequest {
  /** Tile level: 0, 1, 2, … for tree levels 0, 8, 16, … */
  readonly level: number;
  readonly index: number;
  /** Number of requested hashes, beginning with the first. */
  readonly width: number;
}

/** A copy of the hashes, or undefined if not all of them are complete nodes of the first `size` leaves. */
export function publishedTile(tree: Tree, size: number, { level, index, width }: TileRequest): Uint8Array | undefined {
  const isPublished =
    Number.isInteger(index) &&
    Number.isInteger(width) &&
    index >= 0 &&
    width >= 1 &&
    width <= TILE_WIDTH &&
    index * TILE_WIDTH + width <= nodesAt(size, level);
  // The memory of the newest tile is reused for the next one.
  return isPublished ? new Uint8Array(tree.tile(level, index).subarray(0, width * HASH)) : undefined;
}

// A tree head signed on demand, beside the ones that appends leave in the log. Only its time is stored (`takeHeadTime`).

/**
 * The head of the first `size` leaves (at least one) with this timestamp.
 * @param key the signer's public key
 * @throws CairnlogError `signer-unavailable`
 */
export async function freshHead(
  tree: Tree,
  size: number,
  timestamp: string,
  signer: Signer,
  key: ServerKey,
): Promise<TreeHead> {
  const root_hash = Buffer.from(rootAt(tree, size)).toString("hex");
  let signature: Buffer;
  try {
    signature = await signatures(signer, key, [treeHeadMessage(root_hash, size, timestamp)]);
  } catch (cause) {
    throw new CairnlogError("signer-unavailable", "The operator key cannot sign.", { cause });
  }
  return {
    tree_size: size,
    root_hash,
    signature: signature.toString("base64"),
    timestamp,
    key_id: signer.fingerprint,
    tree_version: tree.version,
  };
}
