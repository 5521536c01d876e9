/** The interface of the store: reads for any number of threads and processes, and commits for one writer. */

import type { ChangeSet, JournalPosition } from "./changeset.js";
import type { BatchExtent } from "./lmdb/batch-extents.js";
import type { StoreHealth } from "./lmdb/health.js";
import type { PostingTables, Rfc6962Rows } from "./postings/contract.js";
import type { Batch } from "./schema/batch.js";
import type { Key, KeyOf, RowOf, TableName } from "./schema/schema.js";

/** [tree version, tile level, tile index] */
export type TileKey = [treeVersion: 1 | 2, level: number, index: number];

/** A part of a range of rows. */
export interface RowWindow {
  /** Number of rows to skip; 0 if absent. */
  readonly offset?: number;
  readonly limit: number;
}

/**
 * Rows as they were on disk at one moment. Close it soon: while it is open, LMDB cannot reuse the pages that it can
 * see.
 */
export interface Snapshot extends Pick<StoreReader, "get" | "range"> {
  close(): void;
}

/** The disk space and the limits of the log. */
export interface StoreUsage {
  /** Bytes of its files, including free pages inside them. */
  readonly fileBytes: number;
  /** The maximum size of the entries' file. */
  readonly mapBytes: number;
  /** Slots of open read transactions, of all threads and processes. */
  readonly readers: number;
  /** Commits since the moment that the oldest open read shows: pages freed since are not used again while it is open. */
  readonly oldestReader: number;
}

/**
 * Reads of a log's environments. They see only data that is durable. There may be any number of readers, in any thread
 * and process.
 */
export interface StoreReader {
  get<T extends TableName>(table: T, key: KeyOf<T>): RowOf<T> | undefined;
  /**
   * Rows with keys in [start, end), ascending: `limit` rows after the first `offset`. Without arguments, the whole
   * table. Skipped rows are not decoded.
   */
  range<T extends TableName>(
    table: T,
    start?: Key,
    end?: Key,
    window?: RowWindow,
  ): Iterable<{ key: KeyOf<T>; row: RowOf<T> }>;
  /** The row with the greatest key that is not above `key`, in a table whose keys are numbers. */
  floor<T extends TableName>(table: T, key: KeyOf<T> & number): { key: KeyOf<T>; row: RowOf<T> } | undefined;
  /** Keys of a table from `start` on, ascending, including keys of rows that cannot be decoded. */
  keys<T extends TableName>(table: T, start?: Key): Iterable<KeyOf<T>>;
  /** The batch that holds the entry at `index`, or undefined. Its bytes are a copy and stay valid. */
  batchAt(index: number): Batch | undefined;
  /** Like `batchAt`, but without a copy: valid only until the next read. */
  batchView(index: number): Batch | undefined;
  /**
   * Where the batch with the entry at `index`, which is on disk, lies in the data file, to read single entries of it;
   * undefined for small batches, and where that cannot be found out.
   */
  batchPlace(index: number): BatchExtent | undefined;
  lastBatch(): Batch | undefined;
  /** Leaf indexes at which batches begin, ascending. */
  batchKeys(): Iterable<number>;
  tile(treeVersion: 1 | 2, level: number, index: number): Buffer | undefined;
  /** Like `tile`, but without a copy: valid only until the next read. */
  tileView(treeVersion: 1 | 2, level: number, index: number): Buffer | undefined;
  /** Keys of the tiles from `start` on, ascending. */
  tileKeys(start?: TileKey): Iterable<TileKey>;
  /** The position of the newest applied record. */
  position(): JournalPosition;
  /** The files that are read: another object after `pin` has found others in their place, which may be of another log. */
  readonly source: object;
  readonly postings: PostingTables;
  /** Runs with nothing but the words of titles, for entries whose own runs lack them. */
  readonly words: PostingTables;
  /** Runs of words that an older version made and folded in its way. Nothing is written to them any more. */
  readonly titles: PostingTables;
  readonly rfc6962: Rfc6962Rows;
  /** Reads of one moment, for work that takes several turns of the event loop. */
  snapshot(): Snapshot;
  /**
   * Until the next call, all reads see one moment, that of the newest commit. For a reader beside a writer in another
   * process, which may replace rows at any time. LMDB cannot reuse the pages of that moment as long as it is shown.
   */
  pin(): void;
  /** Shows the postings of this moment, and nothing else anew. A run that was read stays whole until the next call. */
  pinPostings(): void;
  /** Gives back what `pin` and `pinPostings` hold: each read sees the newest commit again. */
  unpin(): void;
  /** Ids of the other living processes that have this environment open and have read from it. */
  otherProcesses(): number[];
  usage(): StoreUsage;
  /** Whether this process may still use the environments. Once it may not, every read throws `storage-failed`. */
  readonly health: StoreHealth;
  /**
   * Makes all commits visible to the following reads. Without this, a thread that never yields would always read one
   * snapshot.
   */
  refresh(): void;
  close(): Promise<void>;
}

/** A store that can also write. All writes go through `commit`. */
export interface Store extends StoreReader {
  /**
   * Writes all of `changes` in one transaction, or nothing.
   *
   * Resolves when the changes are on disk. If it rejects, they may still be on disk: read again before the next commit.
   * It refuses if the journal's position is no longer `changes.after`: then another writer has committed, and changes
   * that were formed without its rows must not overwrite them. One commit at a time.
   */
  commit(changes: ChangeSet): Promise<void>;
  /** @throws CairnlogError `storage-full` if a commit would be refused for want of room; `storage-failed` after a failure */
  checkRoom(): void;
  /** Whether, when it was last checked, the disk had room only for those whom an anchor reaches. */
  readonly isTight: boolean;
}
