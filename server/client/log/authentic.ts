/**
 * The tiles of the tree under one root. Each tile is compared with the hash above it before anybody sees it, and those at
 * the right edge, above which there is none, with the root. So it does not matter where their bytes came from.
 */
import { fromHex } from "../../../engine/verify/bytes/encoding.js";
import { inclusionParts, type ProofPart, rfc6962 } from "../../../engine/verify/index.js";
import { type NodePosition, peakPositions } from "../../../engine/verify/tree/merkle.js";
import { FULL_TILE, HASH_BYTES } from "./served.js";

const TILE_LEVELS = 8;
/** Full tiles that are kept in memory, 8 KiB each. The next ones mostly hang below the same. */
const KEPT_TILES = 64;

/** What is there at once, or later. */
export type Awaitable<T> = T | Promise<T>;

/** Where tiles come from. */
interface TileSource {
  /** The first `width` hashes, as they are served. @throws ClientError */
  served(level: number, index: number, width: number): Promise<Uint8Array>;
  /** A full tile of an earlier round; undefined if there is none. */
  kept(level: number, index: number): Awaitable<Uint8Array | undefined>;
}

/** A tile does not have the hash that is above it, or the tiles at the edge do not make the root. */
export class WrongTile extends Error {}

export class AuthenticTiles {
  readonly size: number;
  readonly #source: TileSource;
  /** Level → the unfinished tile there. */
  readonly #edge: ReadonlyMap<number, Uint8Array>;
  readonly #full = new Map<string, Uint8Array>();

  private constructor(size: number, source: TileSource, edge: ReadonlyMap<number, Uint8Array>) {
    this.size = size;
    this.#source = source;
    this.#edge = edge;
  }

  /**
   * Fetches the unfinished tiles, whose hashes are all there is between the root and the full tiles.
   * @param rootHash lower-case hex
   * @throws WrongTile; ClientError
   */
  static async open(size: number, rootHash: string, source: TileSource): Promise<AuthenticTiles> {
    const edge = new Map<number, Uint8Array>();
    for (let level = 0, nodes = size; nodes > 0; level++, nodes = Math.floor(nodes / FULL_TILE)) {
      const width = nodes % FULL_TILE;
      if (width) edge.set(level, await source.served(level, Math.floor(nodes / FULL_TILE), width));
    }
    const tiles = new AuthenticTiles(size, source, edge);
    if (!isEqual(await tiles.fold(peakPositions(size)), fromHex(rootHash)))
      throw new WrongTile("The tiles at the edge do not make the root.");
    return tiles;
  }

  /** Number of hashes of a tile: 0 to 256. */
  width(level: number, index: number): number {
    return Math.max(0, Math.min(FULL_TILE, Math.floor(this.size / FULL_TILE ** level) - index * FULL_TILE));
  }

  /** All hashes that a tile has. @throws WrongTile; ClientError */
  async tile(level: number, index: number): Promise<Uint8Array> {
    if (this.width(level, index) < FULL_TILE) return this.#edge.get(level)!;
    const name = `${level}/${index}`;
    const known = this.#full.get(name);
    if (known) return known;
    const above = await this.tile(level + 1, Math.floor(index / FULL_TILE));
    const at = (index % FULL_TILE) * HASH_BYTES;
    const expected = above.subarray(at, at + HASH_BYTES);
    const isRight = (hashes: Uint8Array) => isEqual(rootOver(hashes), expected);
    const kept = await this.#source.kept(level, index);
    const tile = kept && isRight(kept) ? kept : await this.#source.served(level, index, FULL_TILE);
    if (tile !== kept && !isRight(tile))
      throw new WrongTile(`Tile ${index} of level ${level} has not the hash above it.`);
    if (this.#full.size >= KEPT_TILES) this.#full.delete(this.#full.keys().next().value!);
    this.#full.set(name, tile);
    return tile;
  }

  /** The hash over adjacent complete subtrees. @throws WrongTile; ClientError */
  async fold(positions: ProofPart): Promise<Uint8Array> {
    const hashes: Uint8Array[] = [];
    for (const position of positions) hashes.push(await this.#node(position));
    return rfc6962.foldSubtrees(hashes);
  }

  /** The proof that a leaf is in the tree, from its sibling to the child of the root. @throws WrongTile; ClientError */
  async inclusion(leafIndex: number): Promise<readonly Uint8Array[]> {
    const proof: Uint8Array[] = [];
    for (const part of inclusionParts(leafIndex, this.size)) proof.push(await this.fold(part));
    return proof;
  }

  async #node({ level, index }: NodePosition): Promise<Uint8Array> {
    const span = 2 ** (level % TILE_LEVELS);
    const first = index * span;
    const tile = await this.tile(Math.floor(level / TILE_LEVELS), Math.floor(first / FULL_TILE));
    const at = (first % FULL_TILE) * HASH_BYTES;
    return rootOver(tile.subarray(at, at + span * HASH_BYTES));
  }
}

function rootOver(hashes: Uint8Array): Uint8Array {
  const count = hashes.length / HASH_BYTES;
  return rfc6962.rootOf(Array.from({ length: count }, (_, i) => hashes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES)));
}

const isEqual = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i]);
