/**
 * The tree of one tree version: the frontier, which appends extend, and the tiles, which keep every complete node.
 *
 * Tiles hold 256 hashes of levels 0, 8, 16, …; every other complete node is the root of 2^r neighbours in one tile. The
 * newest tile of each level is in memory. Complete nodes never change, so appends on their way to disk do not affect a
 * reader who asks about a size that is on disk.
 */
import { type Kernel, kernel, type NodeRun, type TreeVersion } from "../../../wasm/index.js";
import { CairnlogError } from "../../base/error.js";
import { Recent } from "../../base/recent.js";
import type { TileChange } from "../../store/changeset.js";
import { HASH } from "../../store/schema/schema.js";
import type { StoreReader } from "../../store/store.js";
import { height, peakPositions } from "../../verify/tree/merkle.js";

/** Every tree that stands over a log. */
export const TREE_VERSIONS: readonly TreeVersion[] = [1, 2];
export const TILE_WIDTH = 256;
/**
 * Sizes of the caches for proofs, for each tree version: crowns of full tiles (4 KiB each, 16 MiB, enough for a million
 * leaves), nodes above the full tiles of other levels (8 KiB each, 2 MiB, enough for 16 million leaves), blocks (400 bytes of text each; a proof uses its block three times), nodes of other tiles (at most 45 KiB a tile, 3 MiB), tiles (8
 * KiB each), peaks and nodes next to them (about 150 bytes each), right edges (about 3 KiB each).
 */
const KEPT_CROWNS = 4096;
const KEPT_BLOCKS = 32;
const KEPT_TEXTS = 64;
const KEPT_TILES = 32;
const KEPT_NODES = 1024;
const KEPT_ABOVES = 256;
const KEPT_EDGES = 64;
/**
 * A tile's crown is its nodes from this level up. Computing it takes 255 hashes, 45 µs, and every proof needs nodes up
 * to the top. Below the crown, four neighbouring leaves and the two nodes above them are a block, which takes two hashes.
 * From level 4 up, a crown took half the memory, and a proof of a leaf that was not asked for before 15 hashes.
 */
const CROWN_LEVEL = 2;
const CROWN_WIDTH = 64;
/** Number of nodes on the lowest level above a tile. */
const ABOVE_WIDTH = TILE_WIDTH / 2;
/** Leaves in a block. */
export const BLOCK = 2 ** CROWN_LEVEL;
export const TILE_LEVELS = 8;
const HEX = 2 * HASH;

/** Hex text of hashes. */
export const hex = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex");

/** Number of complete nodes on a tile level in a tree of `size` leaves. */
export const nodesAt = (size: number, tileLevel: number): number => Math.floor(size / TILE_WIDTH ** tileLevel);

/** The nodes of a tree of some size that are last on their level and not complete. */
interface RightEdge {
  readonly root: Uint8Array;
  readonly rootHex: string;
  /** 32 bytes by level; no entry if the last node is complete. */
  readonly padded: ReadonlyMap<number, Uint8Array>;
}

/** The newest, unfinished tile of a level. */
interface OpenTile {
  index: number;
  count: number;
  readonly hashes: Uint8Array;
}

export class Tree {
  readonly version: TreeVersion;
  readonly #store: StoreReader;
  readonly #kernel: Kernel;
  #size = 0;
  /** Roots of the complete subtrees, lowest level first. */
  #peaks: Uint8Array = new Uint8Array(0);
  #open: OpenTile[] = [];
  /** Full tiles on their way to disk, by `level/index`. */
  readonly #sealed = new Map<string, Uint8Array>();
  readonly #tiles = new Recent<number, Uint8Array>(KEPT_TILES);
  readonly #nodes = new Recent<number, Uint8Array>(KEPT_NODES);
  readonly #aboves = new Recent<number, Uint8Array>(KEPT_ABOVES);
  readonly #crowns = new Recent<number, Buffer>(KEPT_CROWNS);
  readonly #blocks = new Recent<number, string>(KEPT_BLOCKS);
  /** Requested nodes of a tile. */
  readonly #texts = new Recent<number, (string | undefined)[]>(KEPT_TEXTS);
  readonly #edges = new Recent<number, RightEdge>(KEPT_EDGES);

  constructor(version: TreeVersion, store: StoreReader, hasher: Kernel = kernel) {
    this.version = version;
    this.#store = store;
    this.#kernel = hasher;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Reads the state from disk for a tree of `size` leaves. `tail` holds the digests of the leaves since the last full
   * level-0 tile. Everything else comes from the newest tiles, so this costs the same at any size.
   */
  restore(size: number, tail: Uint8Array): void {
    this.#size = size;
    this.#sealed.clear();
    this.#tiles.clear();
    this.#nodes.clear();
    this.#aboves.clear();
    this.#crowns.clear();
    this.#blocks.clear();
    this.#texts.clear();
    this.#edges.clear();
    this.#open = [];
    for (let level = 0; level === 0 || nodesAt(size, level) > 0; level++) {
      const nodes = nodesAt(size, level);
      const tile = { index: Math.floor(nodes / TILE_WIDTH), count: nodes % TILE_WIDTH, hashes: emptyTile() };
      if (level === 0) tile.hashes.set(this.#kernel.leaves(tail, this.version));
      else if (tile.count) tile.hashes.set(this.#stored(level, tile.index, tile.count));
      this.#open.push(tile);
    }
    const peaks: Uint8Array[] = [];
    for (let level = 0; 2 ** level <= size; level++) {
      const nodes = Math.floor(size / 2 ** level);
      if (nodes % 2 === 1) peaks.push(this.node(level, nodes - 1));
    }
    this.#peaks = Buffer.concat(peaks);
  }

  /**
   * Appends leaves for `digests` (32 bytes each).
   * @returns the root of every new size, if requested, and the tiles to write with these entries
   */
  extend(digests: Uint8Array, withRoots: boolean): { readonly roots: Uint8Array; readonly tiles: TileChange[] } {
    const { peaks, roots, runs } = this.#kernel.extend(this.#size, this.#peaks, digests, this.version, withRoots);
    this.#size += digests.length / HASH;
    this.#peaks = peaks;
    return { roots, tiles: runs.flatMap((run) => this.#keep(run)) };
  }

  #keep({ level, hashes }: NodeRun): TileChange[] {
    const tileLevel = level / TILE_LEVELS;
    const changes: TileChange[] = [];
    let tile = this.#open[tileLevel];
    if (!tile) {
      tile = { index: 0, count: 0, hashes: emptyTile() };
      this.#open[tileLevel] = tile;
    }
    const change = (index: number, bytes: Uint8Array) =>
      changes.push({ treeVersion: this.version, level: tileLevel, index, hashes: bytes });
    for (let at = 0; at < hashes.length; ) {
      const taken = Math.min(hashes.length - at, (TILE_WIDTH - tile.count) * HASH);
      tile.hashes.set(hashes.subarray(at, at + taken), tile.count * HASH);
      tile.count += taken / HASH;
      at += taken;
      if (tile.count < TILE_WIDTH) break;
      const full = tile.hashes.slice();
      this.#sealed.set(`${tileLevel}/${tile.index}`, full);
      change(tile.index, full);
      tile.index++;
      tile.count = 0;
    }
    if (tileLevel > 0 && tile.count) change(tile.index, tile.hashes.slice(0, tile.count * HASH));
    return changes;
  }

  /** Removes full tiles that are now on disk from memory. */
  written(tiles: readonly TileChange[]): void {
    for (const tile of tiles)
      if (tile.treeVersion === this.version && tile.hashes?.length === TILE_WIDTH * HASH)
        this.#sealed.delete(`${tile.level}/${tile.index}`);
  }

  /** The first `count` hashes of a tile on disk. */
  #stored(level: number, index: number, count = TILE_WIDTH): Uint8Array {
    return this.#whole(this.#store.tile(this.version, level, index), level, index, count);
  }

  #whole(hashes: Uint8Array | undefined, level: number, index: number, count: number): Uint8Array {
    if (hashes && hashes.length >= count * HASH) return hashes.subarray(0, count * HASH);
    throw new CairnlogError(
      "corrupt-log",
      `Tile ${index} of level ${level} (tree version ${this.version}) is missing or cut short: the data directory is damaged. cairnlog fsck --rebuild restores it.`,
    );
  }

  /** Hashes of tile `index` at `tileLevel`; 256 of them, or as many as there are if it is the newest. */
  tile(tileLevel: number, index: number): Uint8Array {
    const open = this.#open[tileLevel];
    if (open?.index === index) return open.hashes.subarray(0, open.count * HASH);
    const key = `${tileLevel}/${index}`;
    return this.#sealed.get(key) ?? this.#tiles.made(position(tileLevel, index), () => this.#stored(tileLevel, index));
  }

  /** The complete node (level, index), 32 bytes. Do not write to it. The caller must know that the node is complete. */
  node(level: number, index: number): Uint8Array {
    // A node on a level of tiles is read, not computed.
    if (level % TILE_LEVELS === 0) return this.#make(level, index);
    const tileLevel = Math.floor(level / TILE_LEVELS);
    const width = TILE_WIDTH / 2 ** (level % TILE_LEVELS);
    const tileIndex = Math.floor(index / width);
    if (tileIndex >= this.#open[tileLevel]!.index)
      return this.#nodes.made(position(level, index), () => this.#make(level, index));
    if (tileLevel > 0) return nodeIn(this.#above(tileLevel, tileIndex), placeOf(width, ABOVE_WIDTH, index));
    // Of a tile whose crown is not kept, an old size needs half of the hashes that the crown takes.
    const crown = level < CROWN_LEVEL ? undefined : this.#crowns.get(tileIndex);
    return crown ? nodeIn(crown, placeOf(width, CROWN_WIDTH, index)) : this.#make(level, index);
  }

  /** All nodes above those of a full tile that is not of leaves. Old sizes, all over a log, share few such tiles. */
  #above(tileLevel: number, tileIndex: number): Uint8Array {
    return this.#aboves.made(position(tileLevel, tileIndex), () =>
      this.#kernel.subtree(this.#stored(tileLevel, tileIndex), this.version),
    );
  }

  /** Like `node`, as hex. */
  nodeHex(level: number, index: number): string {
    if (level < CROWN_LEVEL) {
      const block = Math.floor((index * 2 ** level) / BLOCK);
      return (block + 1) * BLOCK > this.#size
        ? hex(this.#make(level, index))
        : within(this.#block(block), placeOf(BLOCK / 2 ** level, BLOCK, index));
    }
    const tileLevel = Math.floor(level / TILE_LEVELS);
    const width = TILE_WIDTH / 2 ** (level % TILE_LEVELS);
    const tileIndex = Math.floor(index / width);
    if (tileLevel === 0 && tileIndex < this.#open[0]!.index) {
      const at = placeOf(width, CROWN_WIDTH, index) * HASH;
      return this.#crown(tileIndex).toString("hex", at, at + HASH);
    }
    // There are 256 times as many tiles below as here, so their requested nodes are cached one by one.
    const texts = this.#texts.made(position(tileLevel, tileIndex), () => new Array(2 * TILE_WIDTH - 1));
    const at = 2 * TILE_WIDTH - 2 * width + (index % width);
    texts[at] ??= hex(this.node(level, index));
    return texts[at];
  }

  /**
   * Writes the leaf at `leafIndex`, which must be in a full tile, and its siblings on the levels below the tile's root,
   * 32 bytes each, from the leaf up: for a proof of a leaf that was not asked for before.
   * @param digests entry hashes of the leaf's block. To hash its four leaves takes less time than to read them with their tile
   */
  pathInTile(leafIndex: number, into: Uint8Array, digests?: Uint8Array): void {
    const tileIndex = Math.floor(leafIndex / TILE_WIDTH);
    const place = leafIndex % TILE_WIDTH;
    const crown = this.#crown(tileIndex);
    // Read after the crown: they are valid until the next read.
    const leaves = digests ? this.#kernel.leaves(digests, this.version) : this.#leaves(tileIndex);
    const at = digests ? leafIndex % BLOCK : place;
    copyNode(leaves, at, into, 0);
    copyNode(leaves, at ^ 1, into, 1);
    const pair = ((at >> 1) ^ 1) * 2 * HASH;
    into.set(this.#kernel.parents(leaves.subarray(pair, pair + 2 * HASH), this.version), 2 * HASH);
    for (let level = CROWN_LEVEL, first = 0; level < TILE_LEVELS; first += TILE_WIDTH >> level, level++)
      copyNode(crown, first + ((place >> level) ^ 1), into, level + 1);
  }

  /**
   * The nodes of a full tile of leaves from the crown's level up: 64 of them, then the 32 of the level above, and so on.
   */
  #crown(tileIndex: number): Buffer {
    return this.#crowns.made(tileIndex, () => {
      const above = this.#kernel.subtree(this.#leaves(tileIndex), this.version);
      // A copy with memory of its own, so that the nodes below are not kept.
      const crown = Buffer.allocUnsafeSlow((2 * CROWN_WIDTH - 1) * HASH);
      crown.set(above.subarray(-crown.length));
      return crown;
    });
  }

  /** The hex text of four leaves, and of the two nodes above them. */
  #block(block: number): string {
    return this.#blocks.made(block, () => {
      const first = (block * BLOCK) % TILE_WIDTH;
      const tile = this.#leaves(Math.floor((block * BLOCK) / TILE_WIDTH));
      const leaves = tile.subarray(first * HASH, (first + BLOCK) * HASH);
      return hex(leaves) + hex(this.#kernel.parents(leaves, this.version));
    });
  }

  /**
   * Like `tile(0, index)`, but valid only until the next read: a tile that is requested once is not cached, and only
   * partly copied.
   */
  #leaves(index: number): Uint8Array {
    const open = this.#open[0]!;
    if (open.index === index) return open.hashes.subarray(0, open.count * HASH);
    const view = () => this.#whole(this.#store.tileView(this.version, 0, index), 0, index, TILE_WIDTH);
    return this.#sealed.get(`0/${index}`) ?? view();
  }

  /**
   * The right edge of the tree of the first `size` leaves. Padding ("the last node, paired with itself") exists only
   * here and in the verifier.
   */
  rightEdge(size: number): RightEdge {
    return this.#edges.made(size, () => {
      const padded = new Map<number, Uint8Array>();
      const top = height(size);
      let { level, index } = peakPositions(size).at(-1)!;
      let root: Uint8Array;
      const tileIndex = Math.floor(size / TILE_WIDTH);
      if (size % TILE_WIDTH && !this.#crowns.get(tileIndex)) {
        // All nodes of the last tile, a level at a time: half of the time that each complete node by itself takes.
        let row = this.#leaves(tileIndex).subarray(0, (size % TILE_WIDTH) * HASH);
        for (level = 0; level < Math.min(top, TILE_LEVELS); ) {
          row = this.#kernel.parents(paired(row), this.version);
          if (size % 2 ** ++level) padded.set(level, row.slice(-HASH));
        }
        root = row.slice(-HASH);
        index = Math.floor((size - 1) / 2 ** level);
      } else root = this.node(level, index);
      for (; level < top; level++) {
        const isRight = index % 2 === 1;
        root = this.#kernel.node(isRight ? this.node(level, index - 1) : root, root, this.version);
        index = Math.floor(index / 2);
        padded.set(level + 1, root);
      }
      return { root, rootHex: hex(root), padded };
    });
  }

  #make(level: number, index: number): Uint8Array {
    const tileLevel = Math.floor(level / TILE_LEVELS);
    const width = 2 ** (level % TILE_LEVELS);
    const first = index * width;
    const at = (first % TILE_WIDTH) * HASH;
    const hashes = this.tile(tileLevel, Math.floor(first / TILE_WIDTH)).subarray(at, at + width * HASH);
    if (hashes.length !== width * HASH) throw new RangeError(`node (${level}, ${index}) is not complete`);
    return width === 1 ? hashes.slice() : this.#kernel.subtree(hashes, this.version).slice(-HASH);
  }
}

/** A unique number for every node and tile: there are fewer than 2^44 on a level, and fewer than 2^9 levels. */
const position = (level: number, index: number): number => level * 2 ** 44 + index;

/**
 * The place of the node `index` on the level with `width` nodes, in a list that begins with the `widest` nodes of some
 * level, followed by half as many of the level above, and so on.
 */
const placeOf = (width: number, widest: number, index: number): number => 2 * widest - 2 * width + (index % width);

/** Copied by hand: for so few bytes, a view and a call of `set` would take several times as long. */
function copyNode(from: Uint8Array, node: number, into: Uint8Array, to: number): void {
  for (let i = 0, read = node * HASH, at = to * HASH; i < HASH; i++) into[at++] = from[read++]!;
}

/** One of several hashes, without a copy. */
const nodeIn = (nodes: Uint8Array, place: number): Uint8Array => nodes.subarray(place * HASH, (place + 1) * HASH);

/** One hash in a text of hashes. */
const within = (text: string, place: number): string => text.slice(place * HEX, (place + 1) * HEX);

/** These nodes, the last one twice if it has no other one to be paired with. */
const paired = (nodes: Uint8Array): Uint8Array =>
  nodes.length % (2 * HASH) ? Buffer.concat([nodes, nodes.subarray(-HASH)]) : nodes;

const emptyTile = (): Uint8Array => new Uint8Array(TILE_WIDTH * HASH);
