/**
 * The end of the log in memory: size, last hash, last timestamps, whether it has ended, and both trees. It is ahead of the disk while batches
 * are on their way. `restore` reads it from disk again, at the start and after any failure.
 */
import { CairnlogError } from "../../base/error.js";
import type { TileChange } from "../../store/changeset.js";
import type { Batch } from "../../store/schema/batch.js";
import { HASH } from "../../store/schema/schema.js";
import type { StoreReader } from "../../store/store.js";
import { eventIn } from "../../verify/events/withheld.js";
import type { Entry } from "../../verify/tree/entry.js";
import type { TreeVersion } from "../../verify/tree/merkle.js";
import { type Frozen, frozenBy } from "../operator/entries.js";
import { microsOf, parseTimestamp } from "../state/clock.js";
import { TILE_WIDTH, Tree } from "../tree/tree.js";

/** Tree version of signed heads; the other tree is kept up to date for proofs. */
export const SIGNING_VERSION = 2;

export class Frontier {
  readonly trees: { readonly 1: Tree; readonly 2: Tree };
  readonly #store: StoreReader;
  /** Number of entries, on disk or on their way there. */
  size = 0;
  /** Hex; null on an empty log. */
  lastHash: string | null = null;
  /** Id of the newest entry; 0 on an empty log. */
  lastId = 0;
  /** Microseconds; no later entry or head has an earlier time. */
  lastTimestamp = 0;
  /** How the log ended; null while it may grow. */
  frozen: Frozen | null = null;

  constructor(store: StoreReader) {
    this.#store = store;
    this.trees = { 1: new Tree(1, store), 2: new Tree(2, store) };
  }

  /**
   * Reads the end of the log. After a crash or failure at any point: entries, heads, rows and tiles of a batch were one
   * transaction, so either all of them are on disk or none.
   */
  restore(): void {
    const last = this.#store.lastBatch();
    this.size = last ? last.firstIndex + last.count : 0;
    this.lastHash = last ? last.digests.subarray(-HASH).toString("hex") : null;
    this.lastId = 0;
    this.lastTimestamp = 0;
    this.frozen = null;
    if (last) {
      const newest = eventIn(newestEntry(last));
      this.lastId = newest.id;
      this.lastTimestamp = Math.max(microsOf(newest.timestamp), last.head(last.count - 1)?.timestamp ?? 0);
      this.frozen = frozenBy(newest);
    }
    const signed = this.#store.get("signedHeads", "log");
    if (signed) this.notBefore(signed.timestamp);
    const tail = this.#digests(this.size - (this.size % TILE_WIDTH), this.size);
    this.trees[1].restore(this.size, tail);
    this.trees[2].restore(this.size, tail);
  }

  /** Makes sure that no later entry or head is earlier than `timestamp`, canonical form. */
  notBefore(timestamp: string): void {
    this.lastTimestamp = Math.max(this.lastTimestamp, parseTimestamp(timestamp));
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
   * Adds the digests of new entries to both trees.
   * @param lens the tree version for which the root of every new size is needed; null for none
   * @returns those roots, and the tiles to write
   */
  extend(
    digests: Uint8Array,
    lens: TreeVersion | null = SIGNING_VERSION,
  ): { readonly roots: Uint8Array; readonly tiles: TileChange[] } {
    const first = this.trees[1].extend(digests, lens === 1);
    const second = this.trees[2].extend(digests, lens === 2);
    this.size += digests.length / HASH;
    return { roots: lens === 1 ? first.roots : second.roots, tiles: [...second.tiles, ...first.tiles] };
  }

  written(tiles: readonly TileChange[]): void {
    this.trees[1].written(tiles);
    this.trees[2].written(tiles);
  }
}

/** @throws CairnlogError `corrupt-log` */
function newestEntry(last: Batch): Entry {
  try {
    return JSON.parse(last.entry(last.count - 1).toString("utf8")) as Entry;
  } catch (cause) {
    throw new CairnlogError(
      "corrupt-log",
      "The newest entry of the log cannot be read. Restore the newest backup (cairnlog restore).",
      { cause },
    );
  }
}
