/** What the root of an old size costs, counted: nodes that are hashed, and tiles that are read. */
import { expect, test } from "vitest";
import { rootAt } from "#cairnlog/engine/log/tree/proofs.js";
import { TILE_WIDTH, Tree } from "#cairnlog/engine/log/tree/tree.js";
import { HASH } from "#cairnlog/engine/store/schema/schema.js";
import type { StoreReader } from "#cairnlog/engine/store/store.js";
import { height } from "#cairnlog/engine/verify/tree/merkle.js";
import { kernel } from "#cairnlog/wasm/index.js";

const SIZE = 3 * TILE_WIDTH ** 2 + 5_000;

/** A tree of `SIZE` leaves, its full tiles on disk. */
function counted() {
  const counts = { hashes: 0, tiles: 0 };
  const tiles = new Map<string, Uint8Array>();
  const read = (_: number, level: number, index: number) => {
    counts.tiles++;
    return tiles.get(`${level}/${index}`);
  };
  const hasher = {
    ...Object.fromEntries(
      ["leaves", "extend"].map((name) => [name, (kernel[name as never] as () => void).bind(kernel)]),
    ),
    node(...nodes: Parameters<typeof kernel.node>) {
      counts.hashes++;
      return kernel.node(...nodes);
    },
    parents(nodes: Uint8Array, version: 1 | 2) {
      counts.hashes += nodes.length / HASH / 2;
      return kernel.parents(nodes, version);
    },
    subtree(nodes: Uint8Array, version: 1 | 2) {
      counts.hashes += nodes.length / HASH - 1;
      return kernel.subtree(nodes, version);
    },
  };
  const tree = new Tree(2, { tile: read, tileView: read } as unknown as StoreReader, hasher as typeof kernel);
  tree.restore(0, new Uint8Array(0));
  const digests = new Uint8Array(SIZE * HASH);
  for (let i = 0; i < SIZE; i++) digests[i * HASH] = i % 251;
  const { tiles: made } = tree.extend(digests, false);
  for (const { level, index, hashes } of made) tiles.set(`${level}/${index}`, hashes!);
  tree.written(made);
  return { tree, counts };
}

/** Number `n` of a sequence of sizes all over the tree. */
const sizeAt = (n: number): number => 1 + ((Math.imul(n + 1, 2_654_435_761) >>> 0) % SIZE);

test("the leaves of one tile are hashed, and the right edge, at sizes all over a tree", () => {
  const { tree, counts } = counted();
  // Each full tile above the leaves is hashed once, and each node of an unfinished one.
  for (let n = 0; n < 400; n++) rootAt(tree, sizeAt(n));
  for (let n = 400; n < 600; n++) {
    const size = sizeAt(n);
    Object.assign(counts, { hashes: 0, tiles: 0 });
    rootAt(tree, size);
    expect(counts.hashes, `${size}`).toBeLessThanOrEqual((size % TILE_WIDTH) + height(size));
    // The tile of the last leaves, and one on each level above where a node of it is asked for itself.
    expect(counts.tiles, `${size}`).toBeLessThanOrEqual(height(size) / 8 + 1);
  }
});

test("a tile whose crown is kept is not hashed again", () => {
  const { tree, counts } = counted();
  const path = new Uint8Array(9 * HASH);
  for (let n = 0; n < 400; n++) rootAt(tree, sizeAt(n));
  for (let n = 400; n < 500; n++) {
    const size = sizeAt(n);
    if (size >= SIZE - TILE_WIDTH) continue;
    tree.pathInTile(size, path);
    counts.hashes = 0;
    rootAt(tree, size);
    expect(counts.hashes, `${size}`).toBeLessThanOrEqual(1 + height(size));
  }
});

test("every root is that of a tree that was made of these leaves alone", () => {
  const { tree } = counted();
  for (let n = 0; n < 40; n++) {
    const size = sizeAt(n);
    const digests = new Uint8Array(size * HASH);
    for (let i = 0; i < size; i++) digests[i * HASH] = i % 251;
    const other = new Tree(2, {} as StoreReader);
    other.restore(0, new Uint8Array(0));
    other.extend(digests, false);
    expect(rootAt(tree, size)).toEqual(rootAt(other, size));
    expect(rootAt(tree, size)).toEqual(rootAt(tree, size));
  }
});
