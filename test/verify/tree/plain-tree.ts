/** The tree by its plain definition, its proofs, and all ways to damage them. */
import { height, type TreeVersion, verifyConsistency, verifyInclusion } from "#cairnlog/engine/verify/tree/merkle.js";
import { sha256 } from "../keys/keys.js";

/** Damaging a proof of size n may need a hash of size n + 1, so the largest damaged size is one less. */
export const LIMIT = 301;
export const VERSIONS: readonly TreeVersion[] = [1, 2];
export const sample = (i: number) => sha256(String(i));
export const leaves = Array.from({ length: LIMIT }, (_, i) => sample(i));
const flip = (hex: string) => (hex.startsWith("0") ? "1" : "0") + hex.slice(1);

/**
 * The plain definition, with caching of everything that never changes: all levels of all sizes up to `LIMIT`, with
 * padding.
 */
export class Prover {
  readonly #version: TreeVersion;
  readonly #complete = new Map<string, string>();
  readonly rows: string[][][] = [[]];

  constructor(version: TreeVersion) {
    this.#version = version;
    const leafRow = leaves.map((leaf) => sha256(version === 1 ? leaf : `\0${leaf}`));
    for (let n = 1; n <= LIMIT; n++) {
      const rows = [leafRow.slice(0, n)];
      for (let row = rows[0]!; row.length > 1; row = rows.at(-1)!) {
        const level = rows.length;
        const parents: string[] = [];
        for (let i = 0; i < row.length; i += 2)
          parents.push(this.#parent(level, i / 2, n, row[i]!, row[i + 1] ?? row[i]!));
        rows.push(parents);
      }
      this.rows.push(rows);
    }
  }

  #parent(level: number, index: number, n: number, left: string, right: string): string {
    const key = `${level}/${index}`;
    const complete = (index + 1) * 2 ** level <= n;
    const known = complete ? this.#complete.get(key) : undefined;
    const hash = known ?? sha256((this.#version === 1 ? "" : "\x01") + left + right);
    if (complete) this.#complete.set(key, hash);
    return hash;
  }

  root(n: number): string {
    return this.rows[n]!.at(-1)![0]!;
  }

  inclusion(i: number, n: number) {
    const rows = this.rows[n]!;
    const auditPath: string[] = [];
    for (let level = 0; level < rows.length - 1; level++) {
      const sibling = rows[level]![(i >> level) ^ 1];
      if (sibling !== undefined) auditPath.push(sibling);
    }
    return {
      leaf: leaves[i]!,
      leafIndex: i,
      treeSize: n,
      auditPath,
      rootHash: this.root(n),
      treeVersion: this.#version,
    };
  }

  consistency(m: number, n: number) {
    const rows = this.rows[LIMIT]!;
    const peaks: string[] = [];
    for (let level = 30; level >= 0; level--) if ((m >> level) & 1) peaks.push(rows[level]![(m >> level) - 1]!);
    const extension: string[] = [];
    for (let at = m; at < n; ) {
      let level = 30;
      while (at % 2 ** level !== 0 || at + 2 ** level > n) level--;
      extension.push(rows[level]![at / 2 ** level]!);
      at += 2 ** level;
    }
    const fromRoot = this.root(m);
    return { fromSize: m, toSize: n, peaks, extension, fromRoot, toRoot: this.root(n), treeVersion: this.#version };
  }
}

/** All ways to damage a list of hashes: one changed, dropped, doubled, swapped with its neighbour; one added. */
function damaged(list: readonly string[]): string[][] {
  const out: string[][] = [[...list, sample(-1)]];
  list.forEach((hash, k) => {
    out.push(list.with(k, flip(hash)), list.toSpliced(k, 1), list.toSpliced(k, 0, hash));
    if (k > 0 && list[k - 1] !== hash) out.push(list.with(k, list[k - 1]!).with(k - 1, hash));
  });
  return out;
}

/** The damages to the proofs of all leaves of size `n` that are accepted. `expect` costs more than a verification, and there are millions. */
export const inclusionTampering = (prover: Prover, n: number): string[] =>
  Array.from({ length: n }, (_, i) => ofLeaf(prover, i, n)).flat();

/** The damages to the proofs from all sizes to `n` that are accepted. */
export const consistencyTampering = (prover: Prover, n: number): string[] =>
  Array.from({ length: n }, (_, i) => ofSizes(prover, i + 1, n)).flat();

function ofLeaf(prover: Prover, i: number, n: number): string[] {
  const proof = prover.inclusion(i, n);
  const accepted: string[] = [];
  const refuse = (change: Partial<typeof proof>) => {
    if (verifyInclusion({ ...proof, ...change })) accepted.push(`leaf ${i} of ${n} with ${JSON.stringify(change)}`);
  };
  for (const auditPath of damaged(proof.auditPath)) refuse({ auditPath });
  refuse({ leaf: flip(proof.leaf) });
  refuse({ rootHash: flip(proof.rootHash) });
  refuse({ treeVersion: proof.treeVersion === 1 ? 2 : 1 });
  for (const leafIndex of [i - 1, i + 1, i ^ 2, n, n + 1, 2 ** height(n) - 1, i + 2 ** 32])
    if (leafIndex !== i) refuse({ leafIndex });
  return accepted;
}

function ofSizes(prover: Prover, m: number, n: number): string[] {
  const proof = prover.consistency(m, n);
  const accepted: string[] = [];
  const refuse = (change: Partial<typeof proof>) => {
    if (verifyConsistency({ ...proof, ...change })) accepted.push(`${m} to ${n} with ${JSON.stringify(change)}`);
  };
  for (const peaks of damaged(proof.peaks)) refuse({ peaks });
  for (const extension of damaged(proof.extension)) refuse({ extension });
  for (const other of [0, 1, m - 1, m + 1, n - 1, n + 1, 2 * n, m + 2 ** 32]) {
    if (other !== m) refuse({ fromSize: other });
    if (other !== n) refuse({ toSize: other });
  }
  refuse({ fromRoot: flip(proof.fromRoot) });
  refuse({ toRoot: flip(proof.toRoot) });
  // A complete tree compared with itself is its own only peak. Nothing is hashed, so the version does not matter.
  const hashed = proof.peaks.length + proof.extension.length > 1;
  if (hashed) refuse({ treeVersion: proof.treeVersion === 1 ? 2 : 1 });
  return accepted;
}
