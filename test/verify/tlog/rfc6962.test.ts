/** The tree of RFC 6962: published vectors, and every proof against the plain recursive definition. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { consistencyParts, inclusionParts, rfc6962 } from "#cairnlog/engine/verify/index.js";
import type { NodePosition } from "#cairnlog/engine/verify/tree/merkle.js";
import { hashOf, plainConsistency, plainInclusion, plainRoot } from "./plain-rfc6962.js";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const bytes = (text: string) => new Uint8Array(Buffer.from(text, "hex"));

/** The tree of 8 leaves in the tests of Certificate Transparency and Trillian. */
const LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
const ROOTS = [
  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
  "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
  "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
  "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
  "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
  "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
  "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
].map(bytes);
const LEAF_HASHES = LEAVES.map((leaf) => rfc6962.leafHash(bytes(leaf)));

describe("the reference tree of 8 leaves", () => {
  test.each(ROOTS.map((root, size) => [size, root] as const))("has the published root at size %i", (size, root) => {
    expect(hex(rfc6962.rootOf(LEAF_HASHES.slice(0, size)))).toBe(hex(root));
  });

  // Leaf (from 0), size, proof.
  test.each([
    [0, 1, []],
    [
      0,
      8,
      [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
      ],
    ],
    [
      5,
      8,
      [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
      ],
    ],
    [2, 3, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]],
    [
      1,
      5,
      [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
      ],
    ],
  ] as const)("proves leaf %i of %i by the published hashes", (leafIndex, treeSize, proof) => {
    const claim = { leafHash: LEAF_HASHES[leafIndex]!, leafIndex, treeSize, rootHash: ROOTS[treeSize]! };
    expect(rfc6962.verifyInclusion({ ...claim, proof: proof.map(bytes) })).toBe(true);
    expect(fold(inclusionParts(leafIndex, treeSize), LEAF_HASHES).map(hex)).toEqual(proof);
  });

  test.each([
    [1, 1, []],
    [
      1,
      8,
      [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
      ],
    ],
    [
      6,
      8,
      [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
      ],
    ],
    [
      2,
      5,
      [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
      ],
    ],
  ] as const)("proves that size %i begins size %i by the published hashes", (fromSize, toSize, proof) => {
    const claim = { fromSize, toSize, fromRoot: ROOTS[fromSize]!, toRoot: ROOTS[toSize]! };
    expect(rfc6962.verifyConsistency({ ...claim, proof: proof.map(bytes) })).toBe(true);
    expect(fold(consistencyParts(fromSize, toSize), LEAF_HASHES).map(hex)).toEqual(proof);
  });
});

/** The hashes of a proof from its parts. */
const fold = (parts: readonly (readonly NodePosition[])[], leaves: readonly Uint8Array[]): Uint8Array[] =>
  parts.map((part) =>
    rfc6962.foldSubtrees(
      part.map(({ level, index }) => plainRoot(leaves.slice(index * 2 ** level, (index + 1) * 2 ** level))),
    ),
  );

const LEAF = fc.uint8Array({ maxLength: 40 });
const TREE = fc.array(LEAF, { minLength: 1, maxLength: 40 }).map((data) => data.map((leaf) => hashOf(0, leaf)));

describe("by the plain recursive definition", () => {
  test("hashes and roots agree", () => {
    fc.assert(
      fc.property(LEAF, TREE, (leaf, leaves) => {
        expect(rfc6962.leafHash(leaf)).toEqual(hashOf(0, leaf));
        expect(rfc6962.nodeHash(leaves[0]!, leaves.at(-1)!)).toEqual(hashOf(1, leaves[0]!, leaves.at(-1)!));
        expect(rfc6962.rootOf(leaves)).toEqual(plainRoot(leaves));
      }),
    );
  });

  test("every inclusion proof of small trees is made and accepted, and none of another leaf, size or length", () => {
    const leaves = Array.from({ length: 18 }, (_, i) => hashOf(0, Uint8Array.of(i)));
    for (let treeSize = 1; treeSize <= leaves.length; treeSize++)
      for (let leafIndex = 0; leafIndex < treeSize; leafIndex++) {
        const tree = leaves.slice(0, treeSize);
        const proof = plainInclusion(leafIndex, tree);
        expect(fold(inclusionParts(leafIndex, treeSize), leaves)).toEqual(proof);
        const claim = { leafHash: leaves[leafIndex]!, leafIndex, treeSize, proof, rootHash: plainRoot(tree) };
        expect(rfc6962.verifyInclusion(claim)).toBe(true);
        for (const other of [
          { leafIndex: leafIndex + 1 },
          { leafIndex: leafIndex - 1 },
          { treeSize: leafIndex },
          { proof: [...proof, leaves[0]!] },
          { proof: proof.slice(1), leafHash: leaves[treeSize] ?? leaves[0]! },
          { rootHash: leaves[(leafIndex + 1) % leaves.length]! },
          { leafHash: hashOf(1, leaves[leafIndex]!) },
          ...proof.map((_, at) => ({ proof: proof.with(at, hashOf(0, proof[at]!)) })),
          ...proof.map((_, at) => ({ proof: proof.toSpliced(at, 1) })),
        ])
          expect(rfc6962.verifyInclusion({ ...claim, ...other })).toBe(false);
      }
  });

  test("every consistency proof of small trees is made and accepted, and none of other sizes, roots or lengths", () => {
    const leaves = Array.from({ length: 18 }, (_, i) => hashOf(0, Uint8Array.of(i)));
    const roots = Array.from({ length: 19 }, (_, size) => plainRoot(leaves.slice(0, size)));
    for (let toSize = 1; toSize <= leaves.length; toSize++)
      for (let fromSize = 1; fromSize <= toSize; fromSize++) {
        const proof = plainConsistency(fromSize, leaves.slice(0, toSize));
        expect(fold(consistencyParts(fromSize, toSize), leaves)).toEqual(proof);
        const claim = { fromSize, toSize, proof, fromRoot: roots[fromSize]!, toRoot: roots[toSize]! };
        expect(rfc6962.verifyConsistency(claim)).toBe(true);
        for (const other of [
          { toSize: fromSize - 1 },
          { fromRoot: hashOf(0, roots[fromSize]!) },
          { toRoot: hashOf(0, roots[toSize]!) },
          { proof: [...proof, leaves[0]!] },
          ...proof.map((_, at) => ({ proof: proof.with(at, hashOf(0, proof[at]!)) })),
          ...proof.map((_, at) => ({ proof: proof.toSpliced(at, 1) })),
        ])
          expect(rfc6962.verifyConsistency({ ...claim, ...other })).toBe(false);
      }
  });

  test("a proof with any change of its sizes either is refused or speaks of the same two trees", () => {
    fc.assert(
      fc.property(TREE, fc.nat(), fc.nat(64), fc.nat(64), (leaves, seed, otherFrom, otherTo) => {
        const fromSize = 1 + (seed % leaves.length);
        const claim = {
          fromRoot: plainRoot(leaves.slice(0, fromSize)),
          toRoot: plainRoot(leaves),
          proof: plainConsistency(fromSize, leaves),
        };
        expect(rfc6962.verifyConsistency({ ...claim, fromSize, toSize: leaves.length })).toBe(true);
        // A proof does not say its sizes: some proofs fit other sizes. It never shows other roots.
        if (rfc6962.verifyConsistency({ ...claim, fromSize: otherFrom, toSize: otherTo }))
          expect(otherFrom === otherTo).toBe(claim.proof.length === 0);
      }),
    );
  });
});

describe("odd input", () => {
  const empty = rfc6962.EMPTY_ROOT;
  const [one, two] = [ROOTS[1]!, ROOTS[2]!];

  test("every tree begins with the empty one, and that needs no proof", () => {
    const claim = { fromSize: 0, toSize: 2, fromRoot: empty, toRoot: two, proof: [] };
    expect(rfc6962.verifyConsistency(claim)).toBe(true);
    expect(rfc6962.verifyConsistency({ ...claim, toSize: 0, toRoot: empty })).toBe(true);
    expect(rfc6962.verifyConsistency({ ...claim, toSize: 0, toRoot: one })).toBe(false);
    expect(rfc6962.verifyConsistency({ ...claim, fromRoot: one })).toBe(false);
    expect(rfc6962.verifyConsistency({ ...claim, proof: [one] })).toBe(false);
  });

  test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, "1", undefined])("no size is %s", (size) => {
    const odd = size as number;
    expect(rfc6962.verifyConsistency({ fromSize: odd, toSize: 2, fromRoot: one, toRoot: two, proof: [two] })).toBe(
      false,
    );
    expect(rfc6962.verifyConsistency({ fromSize: 1, toSize: odd, fromRoot: one, toRoot: two, proof: [two] })).toBe(
      false,
    );
    const claim = { leafHash: one, leafIndex: 0, treeSize: 1, proof: [], rootHash: one };
    expect(rfc6962.verifyInclusion({ ...claim, treeSize: odd })).toBe(false);
    expect(rfc6962.verifyInclusion({ ...claim, leafIndex: odd })).toBe(false);
    expect(() => inclusionParts(odd, 2)).toThrow(expect.objectContaining({ code: "invalid-input" }));
    expect(() => consistencyParts(1, odd)).toThrow(expect.objectContaining({ code: "invalid-input" }));
  });

  test.each([new Uint8Array(31), new Uint8Array(33), "ab".repeat(32), null])("no hash is %s", (hash) => {
    const odd = hash as Uint8Array;
    const claim = { leafHash: LEAF_HASHES[0]!, leafIndex: 0, treeSize: 2, proof: [LEAF_HASHES[1]!], rootHash: two };
    expect(rfc6962.verifyInclusion(claim)).toBe(true);
    for (const other of [{ leafHash: odd }, { proof: [odd] }, { rootHash: odd }, { proof: odd as never }])
      expect(rfc6962.verifyInclusion({ ...claim, ...other })).toBe(false);
    const consistency = { fromSize: 1, toSize: 2, fromRoot: one, toRoot: two, proof: [LEAF_HASHES[1]!] };
    expect(rfc6962.verifyConsistency(consistency)).toBe(true);
    for (const other of [{ fromRoot: odd }, { proof: [odd] }, { toRoot: odd }, { proof: odd as never }])
      expect(rfc6962.verifyConsistency({ ...consistency, ...other })).toBe(false);
    expect(() => rfc6962.nodeHash(one, odd)).toThrow(expect.objectContaining({ code: "invalid-input" }));
  });

  test("proofs of the largest sizes have their 53 hashes, and work ends with them", () => {
    const size = Number.MAX_SAFE_INTEGER;
    expect(inclusionParts(0, size)).toHaveLength(53);
    expect(consistencyParts(1, size)).toHaveLength(53);
    const claim = { leafHash: one, leafIndex: 0, treeSize: size, rootHash: two };
    const proof = Array<Uint8Array>(53).fill(one);
    const rootHash = proof.reduce((hash, sibling) => hashOf(1, hash, sibling), one);
    expect(rfc6962.verifyInclusion({ ...claim, rootHash, proof })).toBe(true);
    expect(rfc6962.verifyInclusion({ ...claim, rootHash, proof: Array(1_000_000).fill(one) })).toBe(false);
  });
});
