import { readFileSync } from "node:fs";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import {
  coverPositions,
  EMPTY_ROOT,
  foldPeaks,
  height,
  leafHash,
  nodeHash,
  peakPositions,
  type TreeVersion,
  verifyConsistency,
  verifyInclusion,
  width,
} from "#cairnlog/engine/verify/tree/merkle.js";
import { sha256 } from "../keys/keys.js";
import { consistencyTampering, inclusionTampering, LIMIT, leaves, Prover, sample, VERSIONS } from "./plain-tree.js";

/** Maximum size for tests of damaged proofs; `merkle.long.test.ts` continues to 300. */
const DAMAGED = 70;

describe.each(VERSIONS)("tree version %i", (version) => {
  let prover: Prover;
  beforeAll(() => {
    prover = new Prover(version);
  });

  it("accepts every inclusion proof of every size", () => {
    const refused: string[] = [];
    for (let n = 1; n <= LIMIT; n++)
      for (let i = 0; i < n; i++) if (!verifyInclusion(prover.inclusion(i, n))) refused.push(`${i} of ${n}`);
    expect(refused).toEqual([]);
  });

  it("accepts every consistency proof of every two sizes", () => {
    const refused: string[] = [];
    for (let n = 1; n <= LIMIT; n++)
      for (let m = 1; m <= n; m++) if (!verifyConsistency(prover.consistency(m, n))) refused.push(`${m} to ${n}`);
    expect(refused).toEqual([]);
  });

  it(`refuses every damage to the inclusion proof of every leaf of sizes up to ${DAMAGED}`, () => {
    const sizes = Array.from({ length: DAMAGED }, (_, i) => i + 1);
    expect(sizes.flatMap((n) => inclusionTampering(prover, n))).toEqual([]);
  });

  it(`refuses every damage to the consistency proof of every two sizes up to ${DAMAGED}`, () => {
    const sizes = Array.from({ length: DAMAGED }, (_, i) => i + 1);
    expect(sizes.flatMap((n) => consistencyTampering(prover, n))).toEqual([]);
  });

  it("folds peaks into the root of every size", () => {
    for (let n = 1; n <= LIMIT; n++) expect(foldPeaks(prover.consistency(n, n).peaks, n, version)).toBe(prover.root(n));
    expect(() => foldPeaks([], 1, version)).toThrow(/1 peaks/);
    expect(foldPeaks([], 0, version)).toBe(EMPTY_ROOT);
  });

  it("refuses a log that rewrote a leaf under an old root", () => {
    const proof = prover.consistency(7, 13);
    const rewritten = prover.consistency(9, 13);
    expect(verifyConsistency({ ...proof, peaks: rewritten.peaks.concat(proof.peaks).slice(0, 3) })).toBe(false);
  });

  it("agrees with the reference vectors", () => {
    const file = new URL("../../vectors/merkle.json", import.meta.url);
    const vectors = JSON.parse(readFileSync(file, "utf8")).versions[version];
    expect(leafHash(vectors.leaf0, version)).toBe(vectors.leaf_hash0);
    for (const [n, root] of Object.entries(vectors.roots)) expect(prover.root(Number(n))).toBe(root);
    for (const { i, n, proof } of vectors.inclusion) {
      expect(prover.inclusion(i, n).auditPath).toEqual(proof);
      expect(verifyInclusion({ ...prover.inclusion(i, n), auditPath: proof })).toBe(true);
    }
    for (const { m, n, peaks, extension } of vectors.consistency) {
      expect(prover.consistency(m, n)).toMatchObject({ peaks, extension });
      expect(verifyConsistency({ ...prover.consistency(m, n), peaks, extension })).toBe(true);
    }
  });

  it("refuses the duplicate-leaf forgery of CVE-2012-2459", () => {
    // Leaf 2 of 3 is paired with itself. With the padding in it, the same path would prove a fourth leaf that does not
    // exist.
    const proof = prover.inclusion(2, 3);
    const doubled = leafHash(leaves[2]!, version);
    const root = nodeHash(proof.auditPath[0]!, nodeHash(doubled, doubled, version), version);
    expect(root).toBe(proof.rootHash);
    const auditPath = [doubled, ...proof.auditPath];
    expect(verifyInclusion({ ...proof, leafIndex: 3, auditPath })).toBe(false);
    expect(verifyInclusion({ ...proof, auditPath })).toBe(false);
    // Six leaves have the same root as eight with the last two repeated. Only the size distinguishes them.
    const [first, last] = prover.consistency(6, 6).peaks as [string, string];
    expect(foldPeaks([nodeHash(first, nodeHash(last, last, version), version)], 8, version)).toBe(prover.root(6));
    expect(verifyInclusion({ ...prover.inclusion(5, 6), leafIndex: 7 })).toBe(false);
    expect(
      verifyInclusion({
        ...prover.inclusion(5, 6),
        leafIndex: 7,
        auditPath: [leafHash(leaves[4]!, version), last, first],
      }),
    ).toBe(false);
  });

  it("follows indexes beyond 32 bits", () => {
    const size = 2 ** 52 + 2 ** 33 + 5;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: size - 1 }), (index) => {
        const auditPath: string[] = [];
        let hash = leafHash(sample(1), version);
        for (let level = 0n; level < 53n; level++) {
          const at = BigInt(index) >> level;
          const last = (BigInt(size) - 1n) >> level;
          if (at % 2n === 0n && at === last) {
            hash = nodeHash(hash, hash, version);
          } else {
            const sibling = sample(Number(level));
            auditPath.push(sibling);
            hash = at % 2n === 1n ? nodeHash(sibling, hash, version) : nodeHash(hash, sibling, version);
          }
        }
        const claim = {
          leaf: sample(1),
          leafIndex: index,
          treeSize: size,
          auditPath,
          rootHash: hash,
          treeVersion: version,
        };
        expect(verifyInclusion(claim)).toBe(true);
        expect(verifyInclusion({ ...claim, leafIndex: index % 2 ** 32 })).toBe(index < 2 ** 32);
      }),
      { numRuns: 50, seed: 7 },
    );
  });
});

describe("shapes", () => {
  const anySize = fc.oneof(fc.integer({ min: 1, max: 5000 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }));

  it("agree with exact integers up to 2^53 − 1", () => {
    fc.assert(
      fc.property(anySize, fc.integer({ min: 0, max: 53 }), (size, level) => {
        const n = BigInt(size);
        expect(height(size)).toBe(size === 1 ? 0 : (n - 1n).toString(2).length);
        expect(BigInt(width(level, size))).toBe((n + (1n << BigInt(level)) - 1n) >> BigInt(level));
        const peaks = peakPositions(size);
        expect(peaks.reduce((sum, peak) => sum + (1n << BigInt(peak.level)), 0n)).toBe(n);
        expect(peaks.map((peak) => peak.level)).toEqual(
          [...new Set(peaks.map((peak) => peak.level))].sort((a, b) => b - a),
        );
      }),
      { seed: 7 },
    );
  });

  it("cover a range without gap or overlap, by as few complete subtrees as possible", () => {
    fc.assert(
      fc.property(anySize, anySize, (a, b) => {
        const [from, to] = [Math.min(a, b), Math.max(a, b)];
        let at = BigInt(from);
        for (const { level, index } of coverPositions(from, to)) {
          expect(BigInt(index) << BigInt(level)).toBe(at);
          // A larger subtree would not begin here or would exceed the range.
          const larger = 1n << BigInt(level + 1);
          expect(at % larger !== 0n || at + larger > BigInt(to)).toBe(true);
          at += 1n << BigInt(level);
        }
        expect(at).toBe(BigInt(to));
      }),
      { seed: 7 },
    );
  });

  it("refuse what is no size", () => {
    for (const size of [-1, 1.5, 2 ** 53, Number.NaN]) {
      for (const ask of [() => peakPositions(size), () => width(0, size)]) {
        expect(ask).toThrow(/tree size/);
        expect(ask).toThrow(expect.objectContaining({ code: "invalid-input" }));
      }
    }
    expect(() => height(0)).toThrow(/no height/);
    expect(() => coverPositions(3, 2)).toThrow(/left to right/);
    expect(coverPositions(3, 3)).toEqual([]);
    expect(peakPositions(0)).toEqual([]);
  });
});

it("the empty root is SHA-256 of nothing", () => expect(EMPTY_ROOT).toBe(sha256("")));

it("refuses malformed operands, with no exception from a verifier", () => {
  const hash = sample(0);
  const odd: unknown[] = [
    undefined,
    null,
    0,
    "",
    hash.toUpperCase(),
    `${hash}0`,
    hash.slice(1),
    `${hash}\n`,
    [hash],
    {},
    -1,
    0.5,
  ];
  const inclusion = {
    leaf: hash,
    leafIndex: 0,
    treeSize: 1,
    auditPath: [],
    rootHash: leafHash(hash, 2),
    treeVersion: 2 as const,
  };
  expect(verifyInclusion(inclusion)).toBe(true);
  for (const member of Object.keys(inclusion)) {
    for (const value of odd) {
      if (member === "leafIndex" && value === 0) continue;
      expect(verifyInclusion({ ...inclusion, [member]: value })).toBe(false);
    }
  }
  const root = leafHash(hash, 2);
  const consistency = {
    fromSize: 1,
    toSize: 1,
    peaks: [root],
    extension: [],
    fromRoot: root,
    toRoot: root,
    treeVersion: 2 as const,
  };
  expect(verifyConsistency(consistency)).toBe(true);
  for (const member of Object.keys(consistency)) {
    for (const value of odd) expect(verifyConsistency({ ...consistency, [member]: value })).toBe(false);
  }
  expect(() => leafHash(hash.toUpperCase(), 2)).toThrow(/64 lower-case/);
  expect(() => nodeHash(hash, "", 1)).toThrow(/64 lower-case/);
  expect(() => leafHash(hash, 3 as TreeVersion)).toThrow(/version/);
});
