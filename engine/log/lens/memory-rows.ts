/**
 * The nodes of the lens in memory, for a log that is only read: 0.125 bytes an entry. They are made again at each start.
 */
import type { LensExtent, LensRows, LensTile } from "../../store/postings/contract.js";

export class MemoryLensRows implements LensRows {
  readonly #tiles = new Map<string, LensTile>();
  #extent: LensExtent | undefined;

  tile(level: number, index: number): Uint8Array | undefined {
    return this.#tiles.get(`${level}/${index}`)?.hashes;
  }

  extent(): LensExtent | undefined {
    return this.#extent;
  }

  *tileKeys(): Iterable<readonly [level: number, index: number]> {
    for (const { level, index } of this.#tiles.values()) yield [level, index];
  }

  async write(tiles: readonly LensTile[], extent: LensExtent): Promise<void> {
    for (const tile of tiles) this.#tiles.set(`${tile.level}/${tile.index}`, tile);
    this.#extent = { size: extent.size, lastLeaf: extent.lastLeaf.slice() };
  }

  async clear(): Promise<void> {
    this.#tiles.clear();
    this.#extent = undefined;
  }
}
