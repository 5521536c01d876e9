/**
 * What stores the runs of postings. Apart from the tables themselves, so that the types of a log do not lead to those of
 * lmdb, which do not compile in every project.
 */
import type { RunRow } from "../schema/rows.js";
import type { BlockSource } from "./run-format.js";
import type { StoredRun } from "./runs.js";

/** The part of the store that `Postings` uses. */
export interface PostingTables extends BlockSource {
  /** Another object when other files were opened, whose runs may have the ids of others. */
  readonly source: object;
  /** Ids of the live runs, ascending, including runs whose rows cannot be decoded. */
  runIds(): number[];
  /** @throws an error if there is no such row, or if it cannot be decoded */
  run(id: number): StoredRun;
  /** Ids for which there are blocks, ascending: of live, unfinished and replaced runs. */
  filedIds(): number[];
  writeBlocks(run: number, blocks: readonly [number, Buffer][]): Promise<void>;
  /** Writes the last blocks and the row of a run and removes the rows that it replaces, in one transaction. */
  writeRun(run: number, blocks: readonly [number, Buffer][], row: RunRow, replaced: readonly number[]): Promise<void>;
  /** Removes some blocks of `run`; resolves to whether there are more. */
  removeBlocks(run: number): Promise<boolean>;
  /** Removes every run. The next start computes the postings from the entries again. */
  removeRuns(): Promise<void>;
}

/** Up to 256 nodes of 32 bytes: nodes number 256 · `index` and following of tile level `level`, which is 1 or higher. */
export interface Rfc6962Tile {
  readonly level: number;
  readonly index: number;
  readonly hashes: Uint8Array;
}

/** How far the stored nodes go, and of which log they are. */
export interface Rfc6962Extent {
  /** Number of leaves below the stored nodes; a multiple of 256, at least 256. */
  readonly size: number;
  /**
   * Hash of the last of these leaves, 32 bytes. Entries are linked by their hashes, so a log with the same leaf at this
   * place has the same leaves before it.
   */
  readonly lastLeaf: Uint8Array;
}

/** Where the nodes of the RFC 6962 tree are kept. */
export interface Rfc6962Rows {
  /** The stored nodes of a tile, as of the newest commit; valid until the next call. Undefined if there are none. */
  tile(level: number, index: number): Uint8Array | undefined;
  /** Undefined if nothing is stored. */
  extent(): Rfc6962Extent | undefined;
  /** All keys of tiles, ascending. */
  tileKeys(): Iterable<readonly [level: number, index: number]>;
  /** Writes tiles and the extent that they reach, in one transaction. @throws CairnlogError `storage-full`, `storage-failed` */
  write(tiles: readonly Rfc6962Tile[], extent: Rfc6962Extent): Promise<void>;
  /** Removes everything. @throws CairnlogError `storage-full`, `storage-failed` */
  clear(): Promise<void>;
}
