/**
 * Tiles as mirrors fetch them, limited to the published size. The trees in memory are ahead of the disk. A hash of an
 * entry that is not on disk yet must not be shown, because the entry might never exist.
 */
import { HASH } from "../../store/schema/schema.js";
import { nodesAt, TILE_WIDTH, type Tree } from "./tree.js";

/** Selects hashes of a tile. */
interface TileRequest {
  /** Tile level: 0, 1, 2, … for tree levels 0, 8, 16, … */
  readonly level: number;
  readonly index: number;
  /** Number of requested hashes, beginning with the first. */
  readonly width: number;
}

/** A copy of the hashes, or undefined if not all of them are complete nodes of the first `size` leaves. */
export function publishedTile(tree: Tree, size: number, { level, index, width }: TileRequest): Uint8Array | undefined {
  const isPublished =
    index >= 0 && width >= 1 && width <= TILE_WIDTH && index * TILE_WIDTH + width <= nodesAt(size, level);
  // The memory of the newest tile is reused for the next one.
  return isPublished ? new Uint8Array(tree.tile(level, index).subarray(0, width * HASH)) : undefined;
}
