/**
 * Tiles as mirrors fetch them: cut to what is published. The trees in memory run ahead of the disk, and a hash of an
 * entry that is still on its way there must not be shown: the entry might never exist.
 */
import { HASH } from "../../store/schema.js";
import { nodesAt, TILE_WIDTH, type Tree } from "./tree.js";

/** Which hashes of a tile. */
export interface TileRequest {
  /** Tile level: 0, 1, 2, … for tree levels 0, 8, 16, … */
  readonly level: number;
  readonly index: number;
  /** Hashes wanted, from the first on. */
  readonly width: number;
}

/** A copy of the hashes, or undefined unless all of them are complete nodes of the first `size` leaves. */
export function publishedTile(tree: Tree, size: number, { level, index, width }: TileRequest): Uint8Array | undefined {
  const isPublished =
    index >= 0 && width >= 1 && width <= TILE_WIDTH && index * TILE_WIDTH + width <= nodesAt(size, level);
  // The newest tile's memory is used again for the next one.
  return isPublished ? new Uint8Array(tree.tile(level, index).subarray(0, width * HASH)) : undefined;
}
