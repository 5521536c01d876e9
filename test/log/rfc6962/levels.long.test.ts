/** Nodes of a tree so large that a tile of level 1 becomes full, however many leaves come at once, and over a restart. */
import { expect, test } from "vitest";
import { Rfc6962Growth } from "#cairnlog/engine/log/rfc6962/growth.js";
import { type LeafSource, MemoryRfc6962Rows, Rfc6962Tree } from "#cairnlog/engine/log/rfc6962/tree.js";
import { rfc6962 } from "#cairnlog/engine/verify/index.js";
import { kernel } from "#cairnlog/wasm/index.js";
import { hashOf, plainRoot } from "../../verify/tlog/plain-rfc6962.js";

const HASH = 32;
const TILE = 256;
/** Leaves below a full tile of level 1. */
const FULL = TILE ** 2;
const SIZE = FULL + 3 * TILE + 7;

const leaves = Array.from({ length: SIZE }, (_, i) => hashOf(0, Buffer.from(`${i}`)));
const joined = Buffer.concat(leaves);
const signed = Buffer.concat(
  Array.from({ length: Math.floor(SIZE / TILE) }, (_, tile) =>
    kernel.subtree(joined.subarray(tile * TILE * HASH, (tile + 1) * TILE * HASH), 2).slice(-HASH),
  ),
);
/** A log that has nothing but leaves. */
const source: LeafSource = {
  size: SIZE,
  tile(_, level, index, width) {
    const at = index * TILE * HASH;
    const hashes = (level === 0 ? joined : signed).subarray(at, at + width * HASH);
    return hashes.length === width * HASH ? new Uint8Array(hashes) : undefined;
  },
};

const nodes = Array.from({ length: Math.floor(SIZE / TILE) }, (_, i) =>
  plainRoot(leaves.slice(i * TILE, (i + 1) * TILE)),
);
const rootOf = new Map([TILE, FULL, SIZE].map((size) => [size, plainRoot(leaves.slice(0, size))]));

test.each([[[SIZE]], [[FULL, SIZE]], [[FULL - TILE, SIZE]], [[FULL - 1, FULL + TILE, SIZE]]])(
  "made up to each of %j leaves",
  async (sizes) => {
    for (const isRestarted of [false, true]) {
      const rows = new MemoryRfc6962Rows();
      const tree = new Rfc6962Tree(source, () => rows);
      let growth = new Rfc6962Growth(tree);
      for (const size of sizes) {
        if (isRestarted) growth = new Rfc6962Growth(tree);
        await growth.extend(size);
      }
      expect(Buffer.compare(tree.tile(1, 0)!, Buffer.concat(nodes.slice(0, TILE)))).toBe(0);
      expect(Buffer.compare(tree.tile(1, 1, 3)!, Buffer.concat(nodes.slice(TILE)))).toBe(0);
      expect(Buffer.compare(tree.tile(2, 0, 1)!, rootOf.get(FULL)!)).toBe(0);
      for (const [size, root] of rootOf) expect(Buffer.compare(tree.root(size), root), `${size}`).toBe(0);
      const toRoot = rootOf.get(SIZE)!;
      for (const leafIndex of [0, TILE - 1, FULL - 1, FULL, SIZE - 1]) {
        const proof = tree.inclusionProof(leafIndex, SIZE);
        const claim = { leafHash: leaves[leafIndex]!, leafIndex, treeSize: SIZE, proof, rootHash: toRoot };
        expect(rfc6962.verifyInclusion(claim), `${leafIndex}`).toBe(true);
      }
      for (const [fromSize, fromRoot] of rootOf) {
        const proof = tree.consistencyProof(fromSize, SIZE);
        expect(rfc6962.verifyConsistency({ fromSize, toSize: SIZE, fromRoot, toRoot, proof }), `${fromSize}`).toBe(
          true,
        );
      }
    }
  },
);
