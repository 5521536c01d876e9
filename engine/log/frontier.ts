/**
 * The edge of the log in memory: size, last hash, last timestamps and both trees. It runs ahead of the disk while
 * batches are on their way, and `restore` makes it what the disk says, at start and after any failure alike.
 */
import { CairnlogError } from "../error.js";
import type { TileChange } from "../store/changeset.js";
import type { Store } from "../store/store.js";
import { parseTimestamp } from "./clock.js";
import { TILE_WIDTH, Tree } from "./tree.js";

const HASH = 32;
/** Heads are signed under this lens; the other is kept up for proofs. */
export const SIGNING_VERSION = 2;

export class Frontier {
  readonly trees: { readonly 1: Tree; readonly 2: Tree };
  readonly #store: Store;
  /** Entries, on disk or on their way there. */
  size = 0;
  /** Hex; null on an empty log. */
  lastHash: string | null = null;
  /** Microseconds; no later entry or head is earlier. */
  lastTimestamp = 0;

  constructor(store: Store) {
    this.#store = store;
    this.trees = { 1: new Tree(1, store), 2: new Tree(2, store) };
  }

  /**
   * Reads the end of the log. If we crashed or failed anywhere before: entries, heads, rows and tiles of a batch were
   * one transaction, so either all of them are here or none is.
   */
  restore(): void {
    const last = this.#store.lastBatch();
    this.size = last ? last.firstIndex + last.count : 0;
    this.lastHash = last ? last.digests.subarray(-HASH).toString("hex") : null;
    this.lastTimestamp = 0;
    if (last) {
      const entry = JSON.parse(last.entry(last.count - 1).toString("utf8")) as { timestamp: string };
      this.lastTimestamp = Math.max(parseTimestamp(entry.timestamp), last.head(last.count - 1)?.timestamp ?? 0);
    }
    const tail = this.#digests(this.size - (this.size % TILE_WIDTH), this.size);
    this.trees[1].restore(this.size, tail);
    this.trees[2].restore(this.size, tail);
  }

  #digests(from: number, to: number): Buffer {
    const parts: Buffer[] = [];
    for (let index = from; index < to; ) {
      const batch = this.#store.batchAt(index);
      if (!batch) throw new CairnlogError("corrupt-log", `Entry ${index + 1} is missing from the data directory.`);
      parts.push(batch.digests.subarray((index - batch.firstIndex) * HASH));
      index = batch.firstIndex + batch.count;
    }
    return Buffer.concat(parts);
  }

  /**
   * Extends both trees by the digests of new entries.
   * @returns the root of every new size under the signing lens, and the tiles to write
   */
  extend(digests: Uint8Array): { readonly roots: Uint8Array; readonly tiles: TileChange[] } {
    const signing = this.trees[SIGNING_VERSION].extend(digests, true);
    const other = this.trees[1].extend(digests, false);
    this.size += digests.length / HASH;
    return { roots: signing.roots, tiles: [...signing.tiles, ...other.tiles] };
  }

  written(tiles: readonly TileChange[]): void {
    this.trees[1].written(tiles);
    this.trees[2].written(tiles);
  }
}
