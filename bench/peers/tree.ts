/** The Merkle tree of RFC 6962, in memory. Nodes of complete subtrees are kept, so a root takes log(n) hashes. */
import { hash } from "node:crypto";

const BYTES = 32;
const [LEAF, NODE] = [0, 1];
/** Reused: hashing copies what is in it. */
const pair = Buffer.alloc(1 + 2 * BYTES, NODE);

export const leafHash = (entry: Buffer): Buffer => hash("sha256", Buffer.concat([Buffer.of(LEAF), entry]), "buffer");

export function nodeHash(left: Buffer, right: Buffer): Buffer {
  left.copy(pair, 1);
  right.copy(pair, 1 + BYTES);
  return hash("sha256", pair, "buffer");
}

/** The size of the left subtree of a tree of this size: the largest power of two below it. */
const leftSize = (size: number) => 2 ** Math.floor(Math.log2(size - 1));

export class Tree {
  readonly #levels: Buffer[][] = [[]];

  get size(): number {
    return this.#levels[0]!.length;
  }

  push(leaf: Buffer): void {
    let node = leaf;
    for (let height = 0; ; height++) {
      this.#levels[height] ??= [];
      const level = this.#levels[height]!;
      level.push(node);
      if (level.length % 2 !== 0) return;
      node = nodeHash(level.at(-2)!, level.at(-1)!);
    }
  }

  /** The root over leaves `from` to `to`, a range that the tree has as a node. */
  root(from = 0, to = this.size): Buffer {
    const size = to - from;
    const height = Math.log2(size);
    if (Number.isInteger(height)) return this.#levels[height]![from / size]!;
    const middle = from + leftSize(size);
    return nodeHash(this.root(from, middle), this.root(middle, to));
  }

  /** The inclusion proof of a leaf, from the bottom. */
  path(leaf: number, from = 0, to = this.size): Buffer[] {
    if (to - from === 1) return [];
    const middle = from + leftSize(to - from);
    return leaf < middle
      ? [...this.path(leaf, from, middle), this.root(middle, to)]
      : [...this.path(leaf, middle, to), this.root(from, middle)];
  }
}

/** The root to which a proof leads. */
export function rootOf(leafOf: Buffer, leaf: number, size: number, path: readonly Buffer[]): Buffer {
  if (size === 1) return leafOf;
  const [below, sibling] = [path.slice(0, -1), path.at(-1)!];
  const middle = leftSize(size);
  return leaf < middle
    ? nodeHash(rootOf(leafOf, leaf, middle, below), sibling)
    : nodeHash(sibling, rootOf(leafOf, leaf - middle, size - middle, below));
}
