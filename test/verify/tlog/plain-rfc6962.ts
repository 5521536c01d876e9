/** The tree of RFC 6962 §2.1 by its recursive definitions, with node:crypto. */
import { createHash } from "node:crypto";

/** SHA-256 of a prefix byte and the parts. */
export function hashOf(prefix: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const hash = createHash("sha256").update(Uint8Array.of(prefix));
  for (const part of parts) hash.update(part);
  return new Uint8Array(hash.digest());
}

/** MTH(D[n]), from leaf hashes. */
export function plainRoot(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length === 0) return new Uint8Array(createHash("sha256").digest());
  if (leaves.length === 1) return leaves[0]!;
  const k = split(leaves.length);
  return hashOf(1, plainRoot(leaves.slice(0, k)), plainRoot(leaves.slice(k)));
}

/** PATH(m, D[n]). */
export function plainInclusion(m: number, leaves: readonly Uint8Array[]): Uint8Array[] {
  if (leaves.length === 1) return [];
  const k = split(leaves.length);
  return m < k
    ? [...plainInclusion(m, leaves.slice(0, k)), plainRoot(leaves.slice(k))]
    : [...plainInclusion(m - k, leaves.slice(k)), plainRoot(leaves.slice(0, k))];
}

/** PROOF(m, D[n]). */
export function plainConsistency(m: number, leaves: readonly Uint8Array[]): Uint8Array[] {
  return subproof(m, leaves, true);
}

function subproof(m: number, leaves: readonly Uint8Array[], complete: boolean): Uint8Array[] {
  if (m === leaves.length) return complete ? [] : [plainRoot(leaves)];
  const k = split(leaves.length);
  return m <= k
    ? [...subproof(m, leaves.slice(0, k), complete), plainRoot(leaves.slice(k))]
    : [...subproof(m - k, leaves.slice(k), false), plainRoot(leaves.slice(0, k))];
}

/** The largest power of two below n. */
const split = (n: number): number => 2 ** Math.ceil(Math.log2(n) - 1);
