/**
 * Makes the nodes of the RFC 6962 tree, from the leaves of level 0 and outside the sequencer: 255 hashes for every 256
 * leaves, 0.2 s for a million. An append waits for none of this.
 *
 * If we crash here: the nodes and how far they go are written in one transaction, and all of it follows from the
 * entries. So the next start goes on from what is on disk, whatever that is. If the nodes on disk are of another log (a
 * backup was put in place of the files) or do not fit together, they are removed and made again.
 */
import { kernel } from "../../../wasm/index.js";
import { CairnlogError } from "../../base/error.js";
import { Lock } from "../../base/lock.js";
import { turn } from "../../base/turns.js";
import type { Rfc6962Rows, Rfc6962Tile } from "../../store/postings/contract.js";
import { HASH } from "../../store/schema/schema.js";
import { TILE_LEVELS, TILE_WIDTH } from "../tree/tree.js";
import type { Rfc6962Tree } from "./tree.js";

/** Full tiles of leaves hashed in one turn of the event loop: below 1 ms. */
const TILES_IN_A_TURN = 16;
/** Full tiles of leaves whose nodes are written in one transaction: those of a million entries. */
const TILES_IN_A_WRITE = 4096;

/** The newest, unfinished tile of a level. */
interface OpenTile {
  index: number;
  count: number;
  /** Whether it has nodes that are not on disk. */
  isChanged: boolean;
  readonly hashes: Uint8Array;
}

export class Rfc6962Growth {
  readonly #tree: Rfc6962Tree;
  /** Of tile levels 1, 2, 3, … */
  #open: OpenTile[] = [];
  /** Full tiles of leaves whose nodes are made. */
  #tiles = 0;
  /** What memory was read from; null before, and after a failure. */
  #rows: Rfc6962Rows | null = null;
  readonly #lock = new Lock();

  constructor(tree: Rfc6962Tree) {
    this.#tree = tree;
  }

  /**
   * Makes all nodes of the first `size` leaves that are not made yet. It gives the event loop a turn every millisecond.
   * Calls run one after the other.
   * @throws CairnlogError `not-found` for a size that the log has not reached; `storage-full`, `storage-failed`; the
   *   reason of `signal`. The next call goes on from what is on disk.
   */
  extend(size: number, signal?: AbortSignal): Promise<void> {
    return this.#lock.run(() => this.#extend(Math.floor(size / TILE_WIDTH), signal));
  }

  async #extend(end: number, signal: AbortSignal | undefined): Promise<void> {
    try {
      for (;;) {
        // A reader may find another log in the place of the one whose nodes these are.
        if (this.#rows !== this.#tree.rows) await this.#restore();
        if (this.#tiles >= end) return;
        await this.#grow(Math.min(end, this.#tiles + TILES_IN_A_WRITE), signal);
      }
    } catch (error) {
      this.#rows = null;
      throw error;
    }
  }

  /** Reads the unfinished tiles from disk. */
  async #restore(): Promise<void> {
    const { rows } = this.#tree;
    const stored = this.#stored();
    // A start of a small log writes nothing.
    if (!stored && (rows.extent() || !rows.tileKeys()[Symbol.iterator]().next().done)) await rows.clear();
    this.#tree.clear();
    [this.#tiles, this.#open] = [stored?.tiles ?? 0, stored?.open ?? []];
    this.#rows = rows;
  }

  /** Null if what is on disk cannot be of this log, or is not whole. */
  #stored(): { readonly tiles: number; readonly open: OpenTile[] } | null {
    const { rows, source } = this.#tree;
    const extent = rows.extent();
    const tiles = (extent?.size ?? 0) / TILE_WIDTH;
    if (!extent || !Number.isSafeInteger(tiles) || tiles < 1 || extent.size > source.size) return null;
    if (Buffer.compare(this.#lastLeaf(tiles), extent.lastLeaf) !== 0) return null;
    const open: OpenTile[] = [];
    for (let level = 1, nodes = tiles; nodes >= 1; level++, nodes = Math.floor(nodes / TILE_WIDTH)) {
      const tile = emptyTile(Math.floor(nodes / TILE_WIDTH), nodes % TILE_WIDTH);
      const hashes = tile.count ? rows.tile(level, tile.index) : new Uint8Array(0);
      if (!hashes || hashes.length < tile.count * HASH) return null;
      tile.hashes.set(hashes.subarray(0, tile.count * HASH));
      open.push(tile);
    }
    return { tiles, open };
  }

  /**
   * Makes the nodes of unfinished tiles that cover leaves behind the first `size` once more. If they differ from those that
   * were read from disk, all nodes are removed there, and the next `extend` makes them. Call it when the root of `size`
   * leaves was found right, which covers all others.
   * @throws CairnlogError `corrupt-log` for damaged leaves; `storage-failed`
   */
  recheck(size: number): Promise<void> {
    return this.#lock.run(async () => {
      if (this.#rows !== this.#tree.rows || !this.#open.some((_, i) => !this.#isSound(i + 1, size))) return;
      await this.#tree.rows.clear();
      this.#rows = null;
    });
  }

  #isSound(level: number, size: number): boolean {
    const { index, count, hashes } = this.#open[level - 1]!;
    for (let i = 0; i < count; i++) {
      const node = index * TILE_WIDTH + i;
      if ((node + 1) * TILE_WIDTH ** level <= size) continue;
      const below = level > 1 ? this.#tree.rows.tile(level - 1, node) : undefined;
      if (level > 1 && below?.length !== TILE_WIDTH * HASH) return false;
      const made = below ? kernel.rfc6962Subtree(below).subarray(-HASH) : this.#rootsOf(node, 1);
      if (Buffer.compare(made, hashes.subarray(i * HASH, (i + 1) * HASH)) !== 0) return false;
    }
    return true;
  }

  async #grow(end: number, signal: AbortSignal | undefined): Promise<void> {
    const full: Rfc6962Tile[] = [];
    while (this.#tiles < end) {
      signal?.throwIfAborted();
      const count = Math.min(end - this.#tiles, TILES_IN_A_TURN);
      const roots = this.#rootsOf(this.#tiles, count);
      for (let at = 0; at < roots.length; at += HASH) this.#add(1, roots.subarray(at, at + HASH), full);
      this.#tiles += count;
      await turn();
    }
    const unfinished = this.#open.flatMap(({ index, count, isChanged, hashes }, i) =>
      isChanged ? { level: i + 1, index, hashes: hashes.slice(0, count * HASH) } : [],
    );
    await this.#rows!.write([...full, ...unfinished], {
      size: this.#tiles * TILE_WIDTH,
      lastLeaf: this.#lastLeaf(this.#tiles),
    });
    for (const tile of this.#open) tile.isChanged = false;
  }

  /** The roots of `count` full tiles of leaves. All of them level by level, which keeps the lanes of the kernel full. */
  #rootsOf(first: number, count: number): Uint8Array {
    let nodes: Uint8Array = Buffer.concat(Array.from({ length: count }, (_, i) => this.#soundLeaves(first + i)));
    for (let level = 0; level < TILE_LEVELS; level++) nodes = kernel.rfc6962Parents(nodes);
    return nodes;
  }

  /** Appends a node to a level, and to those above if it fills a tile. */
  #add(level: number, node: Uint8Array, full: Rfc6962Tile[]): void {
    this.#open[level - 1] ??= emptyTile(0, 0);
    const tile = this.#open[level - 1]!;
    tile.hashes.set(node, tile.count * HASH);
    tile.count++;
    tile.isChanged = true;
    if (tile.count < TILE_WIDTH) return;
    full.push({ level, index: tile.index, hashes: tile.hashes.slice() });
    tile.index++;
    tile.count = 0;
    tile.isChanged = false;
    this.#add(level + 1, kernel.rfc6962Subtree(tile.hashes).slice(-HASH), full);
  }

  /**
   * The leaves of a full tile, after they were folded as the signed tree folds them, and compared with its stored node:
   * a checkpoint is signed over what is made of them.
   * @throws CairnlogError `corrupt-log`
   */
  #soundLeaves(tile: number): Uint8Array {
    const leaves = this.#leaves(tile);
    const place = tile % TILE_WIDTH;
    const parent = this.#tree.source.tile(2, 1, Math.floor(tile / TILE_WIDTH), place + 1)?.subarray(place * HASH);
    if (parent && Buffer.compare(kernel.subtree(leaves, 2).subarray(-HASH), parent) === 0) return leaves;
    throw new CairnlogError(
      "corrupt-log",
      `Tile ${tile} of level 0 (tree version 2) does not make its stored node: one of them is damaged, so nothing is signed over it. Stop the service; cairnlog fsck --rebuild mends it.`,
    );
  }

  #leaves(tile: number): Uint8Array {
    const leaves = this.#tree.source.tile(2, 0, tile, TILE_WIDTH);
    if (leaves) return leaves;
    throw new CairnlogError("not-found", `The log has not as many entries as tile ${tile} of level 0 needs.`);
  }

  /** The last leaf of the first `tiles` tiles. */
  #lastLeaf(tiles: number): Uint8Array {
    return this.#leaves(tiles - 1).subarray(-HASH);
  }
}

const emptyTile = (index: number, count: number): OpenTile => ({
  index,
  count,
  isChanged: false,
  hashes: new Uint8Array(TILE_WIDTH * HASH),
});
