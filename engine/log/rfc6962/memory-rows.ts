/**
 * The nodes of the RFC 6962 tree in memory, for a log that is only read: 0.125 bytes an entry. They are made again at each start.
 */
import type { Rfc6962Extent, Rfc6962Rows, Rfc6962Tile } from "../../store/postings/contract.js";

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
