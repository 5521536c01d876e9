/**
 * Inclusion proofs as they are served: bytes, put together from parts that many proofs share and from hashes, which become
 * digits as they are written. Nothing of a proof is text, or an object, before it is sent.
 */
import { hash } from "node:crypto";
import { Lately, Recent } from "../../base/recent.js";
import { HASH } from "../../store/schema/schema.js";
import type { TreeVersion } from "../../verify/tree/merkle.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { checkLeaf, siblings } from "../tree/proofs.js";
import { BLOCK, TILE_LEVELS, TILE_WIDTH, type Tree } from "../tree/tree.js";
import type { Digests } from "./reader.js";

/** Number of sizes for which the common part of all proofs is cached, about 500 bytes each. */
const KEPT_SIZES = 64;
/** Number of proofs that are cached when they are asked for again, about 3 KiB each. */
const KEPT_PROOFS = 256;
/** Number of tiles for which the upper part of all proofs of one size is cached, up to 1 KiB each. */
const KEPT_TILES = 4096;

export interface ServedProof {
  /** Not to be written to. */
  readonly json: Buffer;
  /**
   * Two proofs have the same tag exactly if they are equal, for all leaves, sizes, tree versions and logs. The tag
   * covers leaf, size, root and head, which determine the rest of a proof. It is 43 characters of base64url, the length
   * of a SHA-256.
   */
  readonly tag: string;
}

/** The common part of all proofs of one size and tree version. */
interface Frame {
  /** Behind the leaf's index, up to the leaf's hash. */
  readonly size: Buffer;
  /** Behind the leaf's hash, up to the path. */
  readonly root: Buffer;
  /** Behind the entry's hash. */
  readonly sth: Buffer;
  /** The first half of their tags. */
  readonly tag: string;
}

/** The part of an audit path that is the same for all leaves of a tile. */
interface UpperPath {
  readonly treeSize: number;
  readonly version: TreeVersion;
  /** JSON strings, a comma before each. */
  readonly text: Buffer;
}

/** The most recently requested proof of a leaf. */
interface KeptProof {
  readonly treeSize: number;
  readonly version: TreeVersion;
  readonly served: ServedProof;
}

const TAG_HALF = 22;
const TAG_LENGTH = 43;

const DIGITS = Buffer.from("0123456789abcdef");
const HIGH = Uint8Array.from({ length: 256 }, (_, byte) => DIGITS[byte >> 4]!);
const LOW = Uint8Array.from({ length: 256 }, (_, byte) => DIGITS[byte & 15]!);
const QUOTE = 0x22;
const COMMA = 0x2c;
const BEGINNING = Buffer.from('{"leaf_index":');
const BEFORE_ENTRY = Buffer.from('],"entry_hash":"');

/** Where a proof is put together. The longest path has 60 hashes, and the longest signature 1,368 characters. */
const scratch = Buffer.allocUnsafeSlow(16_384);
/** The leaf and its siblings in its tile. */
const nodes = new Uint8Array((TILE_LEVELS + 1) * HASH);

export class ProofTexts {
  readonly #trees: Readonly<Record<TreeVersion, Tree>>;
  readonly #digests: (leafIndex: number, width: number) => Digests;
  readonly #head: (treeSize: number) => TreeHead | null;
  readonly #frames = new Recent<number, Frame>(KEPT_SIZES);
  readonly #proofs = new Recent<number, KeptProof>(KEPT_PROOFS);
  readonly #asked = new Lately();
  readonly #upper = new Recent<number, UpperPath>(KEPT_TILES);

  /**
   * @param digests returns the entry hash at a leaf index, with its neighbours as `EntryReader.digestsAround` does
   * @param head returns the stored head of a size that is on disk
   */
  constructor(
    trees: Readonly<Record<TreeVersion, Tree>>,
    digests: (leafIndex: number, width: number) => Digests,
    head: (treeSize: number) => TreeHead | null,
  ) {
    this.#trees = trees;
    this.#digests = digests;
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
    const kept = this.#proofs.get(leafIndex);
    if (kept?.treeSize === treeSize && kept.version === version) return kept.served;
    const isAskedAgain = this.#asked.again(leafIndex);
    const served = this.#make(leafIndex, treeSize, version, isAskedAgain);
    if (isAskedAgain) this.#proofs.set(leafIndex, { treeSize, version, served });
    return served;
  }

  /** @param isKept whether the proof is cached. Then its bytes have memory of their own, and keep no larger block alive */
  #make(leafIndex: number, treeSize: number, version: TreeVersion, isKept: boolean): ServedProof {
    const tree = this.#trees[version];
    checkLeaf(tree, leafIndex, treeSize);
    const { size, root, sth, tag } = this.#frames.made(2 * treeSize + version - 1, () =>
      frame(treeSize, version, tree.rightEdge(treeSize).rootHex, this.#head(treeSize)),
    );
    let at = put(size, write(`${leafIndex}`, put(BEGINNING, 0)));
    const leafAt = at;
    const { first, bytes } = this.#digests(leafIndex, BLOCK);
    const upper = this.#upperPath(tree, leafIndex, treeSize);
    // The tile of the leaf is full in the tree that is asked about, as almost all are.
    if ((Math.floor(leafIndex / TILE_WIDTH) + 1) * TILE_WIDTH <= treeSize) {
      tree.pathInTile(leafIndex, nodes, bytes.length === BLOCK * HASH ? bytes : undefined);
      at = put(root, putHex(nodes, 0, at));
      for (let node = 1; node <= TILE_LEVELS; node++) {
        scratch[at++] = QUOTE;
        at = putHex(nodes, node, at);
        scratch[at++] = QUOTE;
        if (node < TILE_LEVELS) scratch[at++] = COMMA;
      }
      at = put(upper, at);
    } else {
      const lower = siblings(tree, leafIndex, treeSize, 0, TILE_LEVELS);
      at = write(tree.nodeHex(0, leafIndex), at);
      at = put(root, at);
      if (lower.length) at = write(`"${lower.join('","')}"`, at);
      at = put(lower.length ? upper : upper.subarray(1), at);
    }
    at = put(BEFORE_ENTRY, at);
    at = putHex(bytes, leafIndex - first, at);
    at = put(sth, at);
    const json = isKept ? Buffer.allocUnsafeSlow(at) : Buffer.allocUnsafe(at);
    scratch.copy(json, 0, 0, at);
    return { json, tag: tag + scratch.toString("latin1", leafAt, leafAt + TAG_LENGTH - TAG_HALF) };
  }

  #upperPath(tree: Tree, leafIndex: number, treeSize: number): Buffer {
    const { version } = tree;
    const tile = Math.floor(leafIndex / TILE_WIDTH);
    const kept = this.#upper.get(tile);
    if (kept?.treeSize === treeSize && kept.version === version) return kept.text;
    let hashes = "";
    for (const sibling of siblings(tree, leafIndex, treeSize, TILE_LEVELS, Number.POSITIVE_INFINITY))
      hashes += `,"${sibling}"`;
    const text = bytesOf(hashes);
    this.#upper.set(tile, { treeSize, version, text });
    return text;
  }
}

/** Writes `bytes` at `at` and returns where they end. */
function put(bytes: Uint8Array, at: number): number {
  scratch.set(bytes, at);
  return at + bytes.length;
}

/** Writes a text of ASCII characters at `at` and returns where it ends. */
const write = (text: string, at: number): number => at + scratch.write(text, at, "latin1");

/** Writes a hash in hex, number `n` of those in `hashes`, and returns where it ends. */
function putHex(hashes: Uint8Array, n: number, at: number): number {
  for (let i = n * HASH; i < (n + 1) * HASH; i++) {
    const byte = hashes[i]!;
    scratch[at++] = HIGH[byte]!;
    scratch[at++] = LOW[byte]!;
  }
  return at;
}

/** In memory of their own. */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(text.length);
  bytes.write(text, "latin1");
  return bytes;
}

function frame(treeSize: number, version: TreeVersion, rootHash: string, head: TreeHead | null): Frame {
  const size = `,"tree_size":${treeSize},"tree_version":${version},"leaf_hash":"`;
  const root = `,"root_hash":"${rootHash}","audit_path":[`;
  const sth = `,"sth":${JSON.stringify(head)}}`;
  const tag = hash("sha256", `${treeSize} ${version}${root}${sth}`, "base64url").slice(0, TAG_HALF);
  // The hashes before them are put without their closing quotation mark.
  return { size: bytesOf(size), root: bytesOf(`"${root}`), sth: bytesOf(`"${sth}`), tag };
}
