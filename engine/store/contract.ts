/** What the log asks of its store: reads of any number of threads and processes, and the commits of one writer. */
import type { Batch } from "./batch.js";
import type { ChangeSet } from "./changeset.js";
import type { JournalPosition } from "./position.js";
import type { PostingTables } from "./postings/tables.js";
import type { Key, KeyOf, RowOf, TableName } from "./schema.js";

/** [tree version, tile level, tile index] */
export type TileKey = [treeVersion: 1 | 2, level: number, index: number];

/** A part of a range of rows. */
export interface RowWindow {
  /** Rows passed over; none when absent. */
  readonly offset?: number;
  readonly limit: number;
}

/** Rows as they are on disk at one moment. Close it soon: while it is open, no page that it can see is used again. */
export interface Snapshot extends Pick<StoreReader, "get" | "range"> {
  close(): void;
}

/** How much room the log takes. */
export interface StoreUsage {
  /** Of its files; pages that are free inside them are used again. */
  readonly fileBytes: number;
  /** What the file of the entries can grow to. */
  readonly mapBytes: number;
  /** Open read transactions' slots, of all threads and processes. */
  readonly readers: number;
}

/** Reads of a log's environments. They see exactly what is durable. Any number of these, in any thread and process. */
export interface StoreReader {
  get<T extends TableName>(table: T, key: KeyOf<T>): RowOf<T> | undefined;
  /**
   * Rows whose keys lie in [start, end), ascending, `limit` of them after the first `offset`; the whole table without
   * arguments. Rows that are skipped are not read, only passed over.
   */
  range<T extends TableName>(
    table: T,
    start?: Key,
    end?: Key,
    window?: RowWindow,
  ): Iterable<{ key: KeyOf<T>; row: RowOf<T> }>;
  /** The row with the greatest key that is not above `key`, in a table whose keys are numbers. */
  floor<T extends TableName>(table: T, key: KeyOf<T> & number): { key: KeyOf<T>; row: RowOf<T> } | undefined;
  /** Keys of a table from `start` on, ascending: also those of rows that cannot be decoded. */
  keys<T extends TableName>(table: T, start?: Key): Iterable<KeyOf<T>>;
  /** The batch that holds the entry at `index`, or undefined. Its bytes are a copy and stay valid. */
  batchAt(index: number): Batch | undefined;
  /** The same, to be read at once: nothing is copied, and the next read may take its place. */
  batchView(index: number): Batch | undefined;
  lastBatch(): Batch | undefined;
  /** Leaf indexes at which batches begin, ascending. */
  batchKeys(): Iterable<number>;
  tile(treeVersion: 1 | 2, level: number, index: number): Buffer | undefined;
  /** The same, to be read at once, as with `batchView`. */
  tileView(treeVersion: 1 | 2, level: number, index: number): Buffer | undefined;
  /** Keys of the tiles from `start` on, ascending. */
  tileKeys(start?: TileKey): Iterable<TileKey>;
  /** How far the journal is applied. */
  position(): JournalPosition;
  readonly postings: PostingTables;
  /** Reads of one moment, for work that takes several turns of the event loop. */
  snapshot(): Snapshot;
  /**
   * Shows all reads that follow one moment, that of the newest commit, until the next call. For readers beside a writer of
   * another process, which may replace rows at any time. While a moment is shown, no page that it can see is used again.
   */
  pin(): void;
  /** Ids of the other processes that have this environment open and have read from it; of those that live. */
  otherProcesses(): number[];
  usage(): StoreUsage;
  /** Lets the reads that follow see all that is committed. A thread that never yields would read one snapshot for ever. */
  refresh(): void;
  close(): Promise<void>;
}

/** The same, and the one door through which anything is written. */
export interface Store extends StoreReader {
  /**
   * Writes all of `changes` in one transaction, or nothing.
   *
   * Resolves when it is on disk. When it rejects, it may be on disk all the same: read again before going on.
   * Refuses when the journal's position is not `changes.after` any more: another writer has committed since, and what was
   * formed without its rows must not be written over them. One commit at a time.
   */
  commit(changes: ChangeSet): Promise<void>;
}
