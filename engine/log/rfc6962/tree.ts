/**
 * The log as a tree of RFC 6962, beside the two trees that it signs at every append, as tools of other transparency logs
 * read it (c2sp.org/tlog-tiles, `docs/tiles.md`).
 *
 * The data of leaf i is the `entry_hash` of entry i, as 64 lower-case hexadecimal characters. So the hash of a leaf is
 * SHA-256(0x00 ‖ entry_hash), which is the leaf hash of tree version 2: level 0 of that tree's tiles is level 0 of this
 * one. Nodes differ: RFC 6962 hashes bytes and never pairs a node with itself. They are made after the commit
 * (`growth.ts`). All of this follows from the entries alone, so no crash can make another root for a size.
 *
 * It belongs to the thread of its log.
 */
import { kernel } from "../../../wasm/index.js";
import { CairnlogError } from "../../base/error.js";
import { Recent } from "../../base/recent.js";
import type { Rfc6962Extent, Rfc6962Rows, Rfc6962Tile } from "../../store/postings/contract.js";
import { HASH } from "../../store/schema/schema.js";
import type { StoreReader } from "../../store/store.js";
import { consistencyParts, inclusionParts, type ProofPart } from "../../verify/tlog/proofpaths.js";
import { foldSubtrees } from "../../verify/tlog/rfc6962.js";
import { peakPositions } from "../../verify/tree/merkle.js";
import { EntryReader } from "../read/reader.js";
import { TILE_LEVELS, TILE_WIDTH } from "../tree/tree.js";

/** What the tree reads of a log. */
export interface LeafSource {
  /** Entries that can be read. */
  readonly size: number;
  /** The first `width` hashes of tile `index` of a level of tiles, 32 bytes each; undefined if there are not so many. */
  tile(treeVersion: 2, level: 0 | 1, index: number, width: number): Uint8Array | undefined;
}

/** Nodes that are kept, 32 bytes each: a proof needs about as many as the tree has levels, the next one mostly the same. */
const KEPT_NODES = 1024;

/** The root over 2^n adjacent nodes. */
const rootOver = (nodes: Uint8Array): Uint8Array =>
  nodes.length === HASH ? nodes.slice() : kernel.rfc6962Subtree(nodes).slice(-HASH);

export class Rfc6962Tree {
  readonly source: LeafSource;
  readonly #rows: () => Rfc6962Rows;
  readonly #nodes = new Recent<string, Uint8Array>(KEPT_NODES);

  /** @param rows opened when a node above level 0 is first needed */
  constructor(source: LeafSource, rows: () => Rfc6962Rows) {
    this.source = source;
    this.#rows = rows;
  }

  get rows(): Rfc6962Rows {
    return this.#rows();
  }

  /** Forgets what it has read, when the log is read from disk anew. */
  clear(): void {
    this.#nodes.clear();
  }

  /**
   * A tile (tlog-tiles, "Merkle Tree"): the first `width` (1 to 256) hashes of tile `index` of a tile level, 32 bytes each.
   * @returns a copy; undefined if the log has not as many complete nodes there, or if they are not made yet
   */
  tile(level: number, index: number, width: number = TILE_WIDTH): Uint8Array | undefined {
    if (level === 0) return this.source.tile(2, 0, index, width);
    // A node of a level above covers 256 times as many leaves, and may be stored only if all of them can be read.
    const covered = (index * TILE_WIDTH + width) * TILE_WIDTH ** level;
    if (!(width >= 1 && width <= TILE_WIDTH && index >= 0 && covered <= this.source.size)) return undefined;
    const hashes = this.rows.tile(level, index);
    return hashes && hashes.length >= width * HASH ? new Uint8Array(hashes.subarray(0, width * HASH)) : undefined;
  }

  /**
   * The root of the first `size` leaves, 32 bytes; that of an empty tree for 0.
   * @throws CairnlogError `not-found` for a size that the log has not reached, or whose nodes are not made yet
   */
  root(size: number): Uint8Array {
    return foldSubtrees(peakPositions(size).map(({ level, index }) => this.#node(level, index)));
  }

  /**
   * The inclusion proof of a leaf in the tree of `size` leaves (RFC 9162 §2.1.3.1), 32 bytes each.
   * @throws CairnlogError `invalid-input` unless 0 <= leafIndex < size; `not-found` as `root` does
   */
  inclusionProof(leafIndex: number, size: number): Uint8Array[] {
    return this.#hashes(inclusionParts(leafIndex, size));
  }

  /**
   * The consistency proof from the tree of `from` leaves to that of `to` leaves (RFC 9162 §2.1.4.1), 32 bytes each.
   * @throws CairnlogError `invalid-input` unless 0 <= from <= to; `not-found` as `root` does
   */
  consistencyProof(from: number, to: number): Uint8Array[] {
    return this.#hashes(consistencyParts(from, to));
  }

  #hashes(parts: readonly ProofPart[]): Uint8Array[] {
    return parts.map((part) => foldSubtrees(part.map(({ level, index }) => this.#node(level, index))));
  }

  /** The complete node (level, index). */
  #node(level: number, index: number): Uint8Array {
    return this.#nodes.made(`${level}/${index}`, () => {
      const width = 2 ** (level % TILE_LEVELS);
      const tileLevel = Math.floor(level / TILE_LEVELS);
      const tile = Math.floor((index * width) / TILE_WIDTH);
      const first = (index * width) % TILE_WIDTH;
      const hashes = this.tile(tileLevel, tile, first + width);
      if (!hashes)
        throw new CairnlogError("not-found", `The nodes of tile ${tile} on level ${tileLevel} are not made yet.`);
      return rootOver(hashes.subarray(first * HASH));
    });
  }
}

// The nodes of the RFC 6962 tree in memory, for a log that is only read: 0.125 bytes an entry. They are made again at each start.

export class MemoryRfc6962Rows implements Rfc6962Rows {
  readonly #tiles = new Map<string, Rfc6962Tile>();
  #extent: Rfc6962Extent | undefined;

  tile(level: number, index: number): Uint8Array | undefined {
    return this.#tiles.get(`${level}/${index}`)?.hashes;
  }

  extent(): Rfc6962Extent | undefined {
    return this.#extent;
  }

  *tileKeys(): Iterable<readonly [level: number, index: number]> {
    for (const { level, index } of this.#tiles.values()) yield [level, index];
  }

  async write(tiles: readonly Rfc6962Tile[], extent: Rfc6962Extent): Promise<void> {
    for (const tile of tiles) this.#tiles.set(`${tile.level}/${tile.index}`, tile);
    this.#extent = { size: extent.size, lastLeaf: extent.lastLeaf.slice() };
  }

  async clear(): Promise<void> {
    this.#tiles.clear();
    this.#extent = undefined;
  }
}

/** @param size returns the number of entries that can be read now */
export function storedLeaves(store: StoreReader, size: () => number): LeafSource {
  const entries = new EntryReader(store);
  return {
    get size() {
      return size();
    },
    tile(treeVersion, level, index, width) {
      const first = index * TILE_WIDTH;
      const covered = (first + width) * TILE_WIDTH ** level;
      if (!(index >= 0 && width >= 1 && width <= TILE_WIDTH && covered <= size())) return undefined;
      // Only full tiles of leaves are stored.
      const stored = store.tile(treeVersion, level, index);
      if (stored && stored.length >= width * HASH) return stored.subarray(0, width * HASH);
      if (level > 0) return undefined;
      const digests = entries.digests(first, first + width);
      return digests && kernel.leaves(digests, treeVersion);
    },
  };
}
