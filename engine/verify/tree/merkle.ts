/**
 * The tree: hashes of its nodes, shapes that follow from its size, and the verifiers of its two kinds of proof.
 * Duplicate-last padding: a node that is last on its level and has an even index is paired with itself. Proofs contain
 * only complete nodes. Padding is always recomputed, which prevents CVE-2012-2459. Sizes go up to 2^53 − 1, so nothing
 * here uses 32-bit operators: division by a power of two is exact in a double.
 */
import type { TreeVersion } from "../../../wasm/index.js";
import { inputError } from "../../base/error.js";
import { fromHex, isHexHash, isSize, toHex } from "../bytes/encoding.js";
import { kernel } from "../bytes/kernel.js";

export type { TreeVersion };

/** Root of the empty tree: SHA-256 of the empty string. */
export const EMPTY_ROOT = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** A node's place: `level` counts from the leaves (0), `index` from the left. */
export interface NodePosition {
  readonly level: number;
  readonly index: number;
}

/** The input of `verifyInclusion`. Any member may come from an attacker; hashes are 64 lower-case hex characters. */
export interface InclusionClaim {
  /** The entry's digest (`entry_hash`), before it is hashed as a leaf. */
  readonly leaf: string;
  readonly leafIndex: number;
  readonly treeSize: number;
  /** Only real siblings, from the leaf upwards. */
  readonly auditPath: readonly string[];
  readonly rootHash: string;
  readonly treeVersion: TreeVersion;
}

/** The input of `verifyConsistency`. Any member may come from an attacker; hashes are 64 lower-case hex characters. */
export interface ConsistencyClaim {
  readonly fromSize: number;
  readonly toSize: number;
  /** Roots of the complete subtrees of the tree of `fromSize` leaves, largest (leftmost) first. */
  readonly peaks: readonly string[];
  /** Roots of the least cover of `[fromSize, toSize)` by complete subtrees, left to right. */
  readonly extension: readonly string[];
  readonly fromRoot: string;
  readonly toRoot: string;
  readonly treeVersion: TreeVersion;
}

/**
 * The leaf hash of an entry's digest, in hex.
 * @throws CairnlogError `invalid-input` unless the digest is 64 lower-case hex characters. In version 1, only that
 *   length distinguishes leaves from nodes.
 */
export function leafHash(digestHex: string, version: TreeVersion): string {
  return toHex(kernel.leaf(hashBytes(digestHex), checkedVersion(version)));
}

/** The hash of the node over two children, in hex. @throws CairnlogError `invalid-input` for a malformed operand. */
export function nodeHash(left: string, right: string, version: TreeVersion): string {
  return toHex(kernel.node(hashBytes(left), hashBytes(right), checkedVersion(version)));
}

/** Level of the root of a tree of `size` ≥ 1 leaves: ⌈log2 size⌉. @throws CairnlogError `invalid-input`. */
export function height(size: number): number {
  if (checkedSize(size) === 0) throw inputError("A tree without leaves has no height.");
  let level = 0;
  for (let nodes = size; nodes > 1; nodes = Math.ceil(nodes / 2)) level++;
  return level;
}

/** Number of nodes on `level` of a tree of `size` leaves: ⌈size / 2^level⌉. @throws CairnlogError `invalid-input`. */
export function width(level: number, size: number): number {
  return Math.ceil(checkedSize(size) / 2 ** level);
}

/** The maximal complete subtrees of a tree of `size` leaves, left to right: one for each set bit of `size`. */
export function peakPositions(size: number): NodePosition[] {
  return coverPositions(0, size);
}

/**
 * The least cover of the leaves `[from, to)` by complete subtrees, left to right.
 * @throws CairnlogError `invalid-input`.
 */
export function coverPositions(from: number, to: number): NodePosition[] {
  if (checkedSize(from) > checkedSize(to)) throw inputError("A cover runs from left to right.");
  const positions: NodePosition[] = [];
  for (let start = from; start < to; ) {
    let level = 0;
    let leaves = 1;
    while (start % (leaves * 2) === 0 && start + leaves * 2 <= to) {
      level++;
      leaves *= 2;
    }
    positions.push({ level, index: start / leaves });
    start += leaves;
  }
  return positions;
}

/**
 * The root, in hex, of the tree of `size` leaves whose complete subtrees have the roots `peaks` (largest first).
 * @throws CairnlogError `invalid-input` when there are more or fewer peaks than `size` has set bits, or one is
 *   malformed.
 */
export function foldPeaks(peaks: readonly string[], size: number, version: TreeVersion): string {
  const positions = peakPositions(size);
  if (peaks.length !== positions.length) {
    throw inputError(`A tree of ${size} leaves has ${positions.length} peaks.`);
  }
  if (size === 0) return EMPTY_ROOT;
  const stack = positions.map(({ level, index }, i) => ({ level, index, hash: hashBytes(peaks[i]!) }));
  return toHex(fold(stack, size, checkedVersion(version)));
}

/**
 * Whether the entry digest `leaf` is number `leafIndex` of the tree of `treeSize` leaves under `rootHash`. False for an
 * index outside the tree, and for a path of another length than index and size give. Never throws.
 */
export function verifyInclusion(claim: InclusionClaim): boolean {
  const { leaf, leafIndex, treeSize, auditPath, rootHash, treeVersion } = claim;
  if (!isVersion(treeVersion) || !isSize(leafIndex) || !isSize(treeSize) || leafIndex >= treeSize) return false;
  if (!isHexHash(leaf) || !isHexHash(rootHash) || !Array.isArray(auditPath)) return false;
  const top = height(treeSize);
  // The length is checked first, because the work below grows with the path, which an attacker chooses.
  if (auditPath.length > top || !auditPath.every(isHexHash)) return false;
  let hash = kernel.leaf(fromHex(leaf), treeVersion);
  let used = 0;
  let index = leafIndex;
  for (let level = 0; level < top; level++, index = Math.floor(index / 2)) {
    const odd = index % 2 === 1;
    if (!odd && index + 1 >= width(level, treeSize)) {
      hash = kernel.node(hash, hash, treeVersion);
      continue;
    }
    const sibling = auditPath[used++];
    if (sibling === undefined) return false;
    hash = odd ? kernel.node(fromHex(sibling), hash, treeVersion) : kernel.node(hash, fromHex(sibling), treeVersion);
  }
  return used === auditPath.length && toHex(hash) === rootHash;
}

/**
 * Whether the tree of `toSize` leaves under `toRoot` begins with the tree of `fromSize` ≥ 1 leaves under `fromRoot`.
 * Both parts must have exactly the number of hashes that the sizes give. Never throws.
 */
export function verifyConsistency(claim: ConsistencyClaim): boolean {
  const { fromSize, toSize, peaks, extension, fromRoot, toRoot, treeVersion } = claim;
  if (!isVersion(treeVersion) || !isSize(fromSize) || !isSize(toSize) || fromSize < 1 || fromSize > toSize)
    return false;
  if (!isHexHash(fromRoot) || !isHexHash(toRoot) || !Array.isArray(peaks) || !Array.isArray(extension)) return false;
  const peaksAt = peakPositions(fromSize);
  const extensionAt = coverPositions(fromSize, toSize);
  if (peaks.length !== peaksAt.length || extension.length !== extensionAt.length) return false;
  if (!peaks.every(isHexHash) || !extension.every(isHexHash)) return false;
  const stack = peaksAt.map(({ level, index }, i) => ({ level, index, hash: fromHex(peaks[i]!) }));
  if (toHex(fold(stack, fromSize, treeVersion)) !== fromRoot) return false;
  extensionAt.forEach(({ level, index }, i) => {
    push(stack, { level, index, hash: fromHex(extension[i]!) }, treeVersion);
  });
  return toHex(fold(stack, toSize, treeVersion)) === toRoot;
}

interface PlacedHash extends NodePosition {
  readonly hash: Uint8Array;
}

/** Adds a complete subtree on the right of the peaks and merges equal levels. This needs no padding. */
function push(stack: PlacedHash[], subtree: PlacedHash, version: TreeVersion): void {
  let { level, index, hash } = subtree;
  while (stack.at(-1)?.level === level) {
    hash = kernel.node(stack.pop()!.hash, hash, version);
    level++;
    index = Math.floor(index / 2);
  }
  stack.push({ level, index, hash });
}

/** The root of a tree of `size` ≥ 1 leaves from its peaks. A consistency proof needs padding only here. */
function fold(peaks: readonly PlacedHash[], size: number, version: TreeVersion): Uint8Array {
  let next = peaks.length - 1;
  let { level, index, hash } = peaks[next]!;
  for (const top = height(size); level < top; level++, index = Math.floor(index / 2)) {
    // An odd index means a complete left sibling, which is always the next peak.
    hash = kernel.node(index % 2 === 1 ? peaks[--next]!.hash : hash, hash, version);
  }
  return hash;
}

function isVersion(value: unknown): value is TreeVersion {
  return value === 1 || value === 2;
}

function checkedSize(size: number): number {
  if (!isSize(size)) throw inputError("A tree size is an integer from 0 to 2^53 − 1.");
  return size;
}

function checkedVersion(version: TreeVersion): TreeVersion {
  if (!isVersion(version)) throw inputError("A tree version is 1 or 2.");
  return version;
}

function hashBytes(hex: string): Uint8Array {
  if (!isHexHash(hex)) throw inputError("A hash is 64 lower-case hexadecimal characters.");
  return fromHex(hex);
}
