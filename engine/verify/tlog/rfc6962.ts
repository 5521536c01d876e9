/**
 * The Merkle tree of RFC 6962 and RFC 9162 §2.1: its hashes, and the verifiers of its two kinds of proof. All other
 * transparency logs use it. Hashes are 32 raw bytes here. Sizes go up to 2^53 − 1, so nothing here uses 32-bit
 * operators: division by a power of two is exact in a double.
 */
import { inputError } from "../../base/error.js";
import { fromHex, isSize } from "../bytes/encoding.js";
import { kernel } from "../bytes/kernel.js";
import { coverPositions, EMPTY_ROOT as EMPTY_ROOT_HEX } from "../tree/merkle.js";

const HASH_BYTES = 32;
const LEAF_PREFIX = 0x00;
const NODE_PREFIX = 0x01;

/** Root of the empty tree: SHA-256 of the empty string. */
export const EMPTY_ROOT: Uint8Array = fromHex(EMPTY_ROOT_HEX);

/** The input of `verifyInclusion`. Any member may come from an attacker; hashes are 32 bytes. */
interface InclusionClaim {
  /** Hash of the leaf: `leafHash` of its data. */
  readonly leafHash: Uint8Array;
  readonly leafIndex: number;
  readonly treeSize: number;
  /** From the leaf's sibling to the child of the root. */
  readonly proof: readonly Uint8Array[];
  readonly rootHash: Uint8Array;
}

/** The input of `verifyConsistency`. Any member may come from an attacker; hashes are 32 bytes. */
interface ConsistencyClaim {
  readonly fromSize: number;
  readonly toSize: number;
  readonly fromRoot: Uint8Array;
  readonly toRoot: Uint8Array;
  readonly proof: readonly Uint8Array[];
}

/** SHA-256(0x00 ‖ data), RFC 9162 §2.1.1. */
export function leafHash(data: Uint8Array): Uint8Array {
  const input = new Uint8Array(1 + data.length);
  input[0] = LEAF_PREFIX;
  input.set(data, 1);
  return kernel.sha256(input);
}

/** SHA-256(0x01 ‖ left ‖ right), RFC 9162 §2.1.1. @throws CairnlogError `invalid-input` unless both are 32 bytes */
export function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  if (!isHash(left) || !isHash(right)) throw inputError("A node's hash has 32 bytes.");
  const input = new Uint8Array(1 + 2 * HASH_BYTES);
  input[0] = NODE_PREFIX;
  input.set(left, 1);
  input.set(right, 1 + HASH_BYTES);
  return kernel.sha256(input);
}

/**
 * The root over adjacent complete subtrees with the roots `subtrees`, left to right. For the peaks of a tree (positions
 * by `peakPositions(size)`), this is its root; for the subtrees of one part of a proof, it is the hash in the proof.
 * Without subtrees it is the root of the empty tree.
 * @throws CairnlogError `invalid-input` for a hash that is not 32 bytes
 */
export function foldSubtrees(subtrees: readonly Uint8Array[]): Uint8Array {
  if (subtrees.length === 0) return EMPTY_ROOT.slice();
  return subtrees.slice(0, -1).reduceRight((right, left) => nodeHash(left, right), subtrees.at(-1)!);
}

/**
 * The root of the tree over `leafHashes`. It takes one hash for each leaf.
 * @throws CairnlogError `invalid-input` for a hash that is not 32 bytes
 */
export function rootOf(leafHashes: readonly Uint8Array[]): Uint8Array {
  const peaks = coverPositions(0, leafHashes.length).map(({ level, index }) => {
    let row = leafHashes.slice(index * 2 ** level, (index + 1) * 2 ** level);
    while (row.length > 1) row = row.flatMap((left, i) => (i % 2 === 0 ? nodeHash(left, row[i + 1]!) : []));
    return row[0]!;
  });
  return foldSubtrees(peaks);
}

/**
 * Whether the leaf is number `leafIndex` of the tree of `treeSize` leaves under `rootHash`: RFC 9162 §2.1.3.2. False
 * for an index outside the tree and for a proof of another length than index and size give. Never throws.
 */
export function verifyInclusion(claim: InclusionClaim): boolean {
  const { leafIndex, treeSize, proof, rootHash } = claim;
  if (!isSize(leafIndex) || !isSize(treeSize) || leafIndex >= treeSize) return false;
  if (!isHash(claim.leafHash) || !isHash(rootHash) || !Array.isArray(proof)) return false;
  let index = leafIndex;
  let last = treeSize - 1;
  let hash = claim.leafHash;
  for (const sibling of proof) {
    // `last` halves at every step, so a proof that is too long is refused after 53 hashes.
    if (last === 0 || !isHash(sibling)) return false;
    if (isOdd(index) || index === last) {
      hash = nodeHash(sibling, hash);
      while (!isOdd(index) && index !== 0) [index, last] = [half(index), half(last)];
    } else {
      hash = nodeHash(hash, sibling);
    }
    [index, last] = [half(index), half(last)];
  }
  return last === 0 && equal(hash, rootHash);
}

/**
 * Whether the tree of `toSize` leaves under `toRoot` begins with the tree of `fromSize` leaves under `fromRoot`: RFC
 * 9162 §2.1.4.2. Two cases that the RFC leaves out need an empty proof: equal sizes, whose roots must be equal; and
 * `fromSize` 0, where `fromRoot` must be that of the empty tree, which every tree begins with. Never throws.
 */
export function verifyConsistency(claim: ConsistencyClaim): boolean {
  const { fromSize, toSize, fromRoot, toRoot, proof } = claim;
  if (!isSize(fromSize) || !isSize(toSize) || fromSize > toSize) return false;
  if (!isHash(fromRoot) || !isHash(toRoot) || !Array.isArray(proof)) return false;
  if (toSize === 0 && !equal(toRoot, EMPTY_ROOT)) return false;
  if (fromSize === 0) return proof.length === 0 && equal(fromRoot, EMPTY_ROOT);
  if (fromSize === toSize) return proof.length === 0 && equal(fromRoot, toRoot);
  if (proof.length === 0) return false;

  let index = fromSize - 1;
  let last = toSize - 1;
  while (isOdd(index)) [index, last] = [half(index), half(last)];
  // A tree of 2^n leaves is one complete subtree, so its own root is where the proof starts. After the loop its index
  // is 0.
  const path = index === 0 ? [fromRoot, ...proof] : proof;
  const first = path[0];
  if (!isHash(first)) return false;
  let from = first;
  let to = first;
  for (const sibling of path.slice(1)) {
    if (last === 0 || !isHash(sibling)) return false;
    if (isOdd(index) || index === last) {
      from = nodeHash(sibling, from);
      to = nodeHash(sibling, to);
      while (!isOdd(index) && index !== 0) [index, last] = [half(index), half(last)];
    } else {
      to = nodeHash(to, sibling);
    }
    [index, last] = [half(index), half(last)];
  }
  return last === 0 && equal(from, fromRoot) && equal(to, toRoot);
}

const half = (value: number): number => Math.floor(value / 2);
const isOdd = (value: number): boolean => value % 2 === 1;

function isHash(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array && value.length === HASH_BYTES;
}

/** Whether two hashes are the same. Both are public, so the time that it takes may tell where they differ. */
function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.every((byte, i) => byte === b[i]);
}
