/**
 * Inclusion proofs as they are served. A proof has about thirty hashes that are cached as text, so its JSON is
 * concatenated from texts. This takes 1 µs; an object with them and `JSON.stringify` took 10 µs.
 */
import { hash } from "node:crypto";
import { Lately, Recent } from "../../recent.js";
import type { TreeVersion } from "../../verify/tree/merkle.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { checkLeaf, siblings } from "./proofs.js";
import { TILE_LEVELS, TILE_WIDTH, type Tree } from "./tree.js";

/** Number of sizes for which the common part of all proofs is cached, about 500 bytes each. */
const KEPT_SIZES = 64;
/** Number of proofs that are cached when they are asked for again, about 3 KiB each. */
const KEPT_PROOFS = 256;
/** Number of tiles for which the upper part of all proofs of one size is cached, up to 1 KiB each. */
const KEPT_TILES = 4096;

export interface ServedProof {
  /** ASCII. */
  readonly json: string;
  /**
   * Two proofs have the same tag exactly if they are equal, for all leaves, sizes, tree versions and logs. The tag
   * covers leaf, size, root and head, which determine the rest of a proof. It is 43 characters of base64url, the length
   * of a SHA-256.
   */
  readonly tag: string;
}

/** The common part of all proofs of one size and tree version. */
interface Frame {
  readonly root: string;
  readonly sth: string;
  /** The first half of their tags. */
  readonly tag: string;
}

/** The part of an audit path that is the same for all leaves of a tile. */
interface UpperPath {
  readonly treeSize: number;
  readonly version: TreeVersion;
  /** JSON strings, a comma before each. */
  readonly text: string;
}

/** The most recently requested proof of a leaf. */
interface KeptProof {
  readonly treeSize: number;
  readonly version: TreeVersion;
  readonly served: ServedProof;
}

const TAG_HALF = 22;
const TAG_LENGTH = 43;

export class ProofTexts {
  readonly #trees: Readonly<Record<TreeVersion, Tree>>;
  readonly #digest: (leafIndex: number) => string;
  readonly #head: (treeSize: number) => TreeHead | null;
  readonly #frames = new Recent<number, Frame>(KEPT_SIZES);
  readonly #proofs = new Recent<number, KeptProof>(KEPT_PROOFS);
  readonly #asked = new Lately();
  readonly #upper = new Recent<number, UpperPath>(KEPT_TILES);

  /**
   * @param digest returns the entry hash at a leaf index, hex
   * @param head returns the stored head of a size that is on disk
   */
  constructor(
    trees: Readonly<Record<TreeVersion, Tree>>,
    digest: (leafIndex: number) => string,
    head: (treeSize: number) => TreeHead | null,
  ) {
    this.#trees = trees;
    this.#digest = digest;
    this.#head = head;
  }

  /** Clears the cache, when memory is read from disk again. */
  clear(): void {
    this.#frames.clear();
    this.#proofs.clear();
    this.#upper.clear();
  }

  /**
   * The JSON of `Log.inclusionProof`. `treeSize` is on disk.
   * @throws CairnlogError `invalid-input` unless 0 <= leafIndex < treeSize <= size
   */
  inclusion(leafIndex: number, treeSize: number, version: TreeVersion): ServedProof {
    const kept = this.#proofs.look(leafIndex);
    if (kept?.treeSize === treeSize && kept.version === version) return kept.served;
    const served = this.#make(leafIndex, treeSize, version);
    if (kept) this.#proofs.delete(leafIndex);
    if (this.#asked.again(leafIndex)) this.#proofs.keep(leafIndex, { treeSize, version, served });
    return served;
  }

  #make(leafIndex: number, treeSize: number, version: TreeVersion): ServedProof {
    const tree = this.#trees[version];
    checkLeaf(tree, leafIndex, treeSize);
    const { root, sth, tag } = this.#frames.get(2 * treeSize + version - 1, () =>
      frame(treeSize, version, tree.rightEdge(treeSize).rootHex, this.#head(treeSize)),
    );
    const leafHash = tree.nodeHex(0, leafIndex);
    const lower = siblings(tree, leafIndex, treeSize, 0, TILE_LEVELS);
    const upper = this.#upperPath(tree, leafIndex, treeSize);
    const path = lower.length ? `"${lower.join('","')}"${upper}` : upper.slice(1);
    const leaf = `{"leaf_index":${leafIndex},"tree_size":${treeSize},"tree_version":${version},"leaf_hash":"${leafHash}"`;
    const json = `${leaf}${root}${path}],"entry_hash":"${this.#digest(leafIndex)}"${sth}`;
    return { json, tag: tag + leafHash.slice(0, TAG_LENGTH - TAG_HALF) };
  }

  #upperPath(tree: Tree, leafIndex: number, treeSize: number): string {
    const { version } = tree;
    const tile = Math.floor(leafIndex / TILE_WIDTH);
    const kept = this.#upper.look(tile);
    if (kept?.treeSize === treeSize && kept.version === version) return kept.text;
    let text = "";
    for (const sibling of siblings(tree, leafIndex, treeSize, TILE_LEVELS, Number.POSITIVE_INFINITY))
      text += `,"${sibling}"`;
    if (kept) this.#upper.delete(tile);
    this.#upper.keep(tile, { treeSize, version, text });
    return text;
  }
}

function frame(treeSize: number, version: TreeVersion, rootHash: string, head: TreeHead | null): Frame {
  const root = `,"root_hash":"${rootHash}","audit_path":[`;
  const sth = `,"sth":${JSON.stringify(head)}}`;
  const tag = hash("sha256", `${treeSize} ${version}${root}${sth}`, "base64url").slice(0, TAG_HALF);
  return { root, sth, tag };
}
