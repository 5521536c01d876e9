/**
 * Which nodes a proof of the RFC 6962 tree is made of (RFC 9162 §§2.1.3.1, 2.1.4.1). Each hash of a proof is the root of
 * a range of leaves. It is given here as the complete subtrees that make up the range, which are the nodes that tiles
 * hold; `foldSubtrees` makes the hash from their roots.
 */
import { inputError } from "../../base/error.js";
import { isSize } from "../bytes/encoding.js";
import { coverPositions, type NodePosition } from "../tree/merkle.js";

/** The complete subtrees under one hash of a proof, left to right. */
export type ProofPart = readonly NodePosition[];

/**
 * The parts of the inclusion proof of leaf `index` in a tree of `size` leaves, from the leaf's sibling upwards.
 * @throws CairnlogError `invalid-input` unless 0 ≤ index < size ≤ 2^53 − 1
 */
export function inclusionParts(index: number, size: number): ProofPart[] {
  if (!isSize(index) || !isSize(size) || index >= size)
    throw inputError(`A tree of ${size} leaves has no leaf ${index}.`);
  const parts: ProofPart[] = [];
  // Downwards from the root: the half without the leaf goes into the proof.
  for (let start = 0, end = size; end - start > 1; ) {
    const middle = start + largestPowerBelow(end - start);
    if (index < middle) {
      parts.push(coverPositions(middle, end));
      end = middle;
    } else {
      parts.push(coverPositions(start, middle));
      start = middle;
    }
  }
  return parts.reverse();
}

/**
 * The parts of the consistency proof from a tree of `from` leaves to one of `to` leaves. Empty for equal sizes and for
 * `from` 0, where no proof is needed.
 * @throws CairnlogError `invalid-input` unless 0 ≤ from ≤ to ≤ 2^53 − 1
 */
export function consistencyParts(from: number, to: number): ProofPart[] {
  if (!isSize(from) || !isSize(to) || from > to)
    throw inputError(`A tree of ${to} leaves does not begin with one of ${from}.`);
  if (from === 0 || from === to) return [];
  const parts: ProofPart[] = [];
  let start = 0;
  let end = to;
  // Downwards to the last subtree of the old tree. Everything on the way that is beside it goes into the proof.
  while (end > from) {
    const middle = start + largestPowerBelow(end - start);
    if (from <= middle) {
      parts.push(coverPositions(middle, end));
      end = middle;
    } else {
      parts.push(coverPositions(start, middle));
      start = middle;
    }
  }
  // The verifier knows the old root. Unless this subtree is the whole old tree, it does not know its hash.
  if (start > 0) parts.push(coverPositions(start, end));
  return parts.reverse();
}

/** The largest power of two below `count` ≥ 2. */
function largestPowerBelow(count: number): number {
  let power = 1;
  while (power * 2 < count) power *= 2;
  return power;
}
