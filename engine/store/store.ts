/**
 * The store: one LMDB environment, opened by one writer. It knows tables, not logs.
 *
 * Durability: `overlappingSync` is off, so a transaction is visible to readers only after it is on disk. Nobody can
 * read a tree head that a power failure takes back, which would be a fork. (It is also faster for one commit at a time:
 * 0.33 ms against 0.45 ms for put and flush on the machine this was measured on.)
 */
import { mkdirSync } from "node:fs";
import { type Database, open, type RangeOptions, type RootDatabase, type Transaction } from "lmdb";
import { Encoder } from "msgpackr";
import { CairnlogError } from "../error.js";
import { Batch } from "./batch.js";
import type { ChangeSet, RowChange } from "./changeset.js";
import type { Run } from "./runs.js";
import { BYTE_TABLES, type Key, type KeyOf, RECORD_TABLES, type RowOf, type RunRow, type TableName } from "./schema.js";

/**
 * Address space set aside for the map: 256 GiB, some 150 million entries. It costs nothing until used. A process has 128 TiB
 * in all, and LMDB does not survive running out of them, so many logs in one process must share.
 */
export const DEFAULT_MAP_SIZE = 2 ** 38;
/** Rows are encoded by the msgpackr of this package, whichever one lmdb brings along: its bytes are our file format. */
const RECORDS = { encoder: { Encoder } } as object;
/** Rows removed per transaction when clearing up. */
const CLEANUP_ROWS = 256;

export interface StoreOptions {
  /** Directory; created when it does not exist. */
  readonly path: string;
  /** Bytes of address space, and the size the data can grow to. */
  readonly mapSize?: number;
  /** For whoever does not hold the writer. */
  readonly readOnly?: boolean;
}

/** What `Postings` needs of the store. */
export interface PostingTables {
  /** A block of a run, to be read at once: the next one may take its place. */
  block(run: number, number: number): Buffer | undefined;
  runs(): Run[];
  /** Removes blocks of runs that are not live; returns the next free run id. */
  removeOrphans(live: ReadonlySet<number>): number;
  writeBlocks(run: number, blocks: readonly [number, Buffer][]): Promise<void>;
  /** Writes the last blocks and the row of a run and drops the rows it replaces, in one transaction. */
  writeRun(run: number, blocks: readonly [number, Buffer][], row: RunRow, replaced: readonly number[]): Promise<void>;
  removeBlocks(run: number, count: number): Promise<void>;
}

/** A part of a range of rows. */
export interface RowWindow {
  /** Rows passed over; none when absent. */
  readonly offset?: number;
  readonly limit: number;
}

/** Rows as they are on disk at one moment. Close it soon: while it is open, no page that it can see is used again. */
export interface Snapshot extends Pick<Store, "get" | "range"> {
  close(): void;
}

/** Reading and committing. Reads see exactly what is durable. */
export interface Store {
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
  /** The batch that holds the entry at `index`, or undefined. Its bytes are a copy and stay valid. */
  batchAt(index: number): Batch | undefined;
  lastBatch(): Batch | undefined;
  tile(treeVersion: 1 | 2, level: number, index: number): Buffer | undefined;
  /**
   * Writes all of `changes` in one transaction, or nothing.
   * Resolves when it is on disk. When it rejects, it may be on disk all the same: read again before going on.
   * Refuses when the log has grown since the batch was formed: another writer's entries must not be overwritten.
   */
  commit(changes: ChangeSet): Promise<void>;
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
  /** Lets the reads that follow see all that is committed. A thread that never yields would read one snapshot for ever. */
  refresh(): void;
  close(): Promise<void>;
}

/** Opens or creates the environment at `options.path`. @throws CairnlogError `storage-failed` */
export function openStore(options: StoreOptions): Store {
  try {
    if (!options.readOnly) mkdirSync(options.path, { recursive: true });
    return new LmdbStore(options);
  } catch (cause) {
    throw new CairnlogError("storage-failed", `The data directory ${options.path} cannot be opened.`, { cause });
  }
}

class LmdbStore implements Store {
  readonly #env: RootDatabase<unknown, Key>;
  readonly #records: ReadonlyMap<TableName, Database<unknown, Key>>;
  readonly #batches: Database<Buffer, number>;
  readonly #tiles: Database<Buffer, [treeVersion: number, level: number, index: number]>;
  readonly postings: PostingTables;
  /** The moment that reads see; without one, each sees what is newest. */
  #pinned: Transaction | undefined;

  constructor({ path, mapSize = DEFAULT_MAP_SIZE, readOnly = false }: StoreOptions) {
    const maxDbs = RECORD_TABLES.length + BYTE_TABLES.length;
    this.#env = open<unknown, Key>({ path, mapSize, maxDbs, readOnly, noSubdir: false, overlappingSync: false });
    // lmdb gathers the writes of a turn of the event loop under a promise of its own, made right after this event. When the
    // disk fails it is rejected; with nobody listening there, that would end the process.
    const listen = () => queueMicrotask(() => void this.#env.committed.then(undefined, () => {}));
    this.#env.on("beforecommit", listen);
    this.#records = new Map(RECORD_TABLES.map((name) => [name, this.#env.openDB({ name, ...RECORDS })]));
    this.#batches = this.#bytes("batches");
    this.#tiles = this.#bytes("tiles");
    this.postings = this.#postingTables(this.#bytes("postings"));
  }

  #bytes<K extends Key>(name: (typeof BYTE_TABLES)[number]): Database<Buffer, K> {
    return this.#env.openDB<Buffer, K>({ name, encoding: "binary" });
  }

  #table<T extends TableName>(name: T): Database<RowOf<T>, KeyOf<T>> {
    return this.#records.get(name) as Database<RowOf<T>, KeyOf<T>>;
  }

  get<T extends TableName>(table: T, key: KeyOf<T>): RowOf<T> | undefined {
    return this.#table(table).get(key, this.#at);
  }

  get #at(): { readonly transaction?: Transaction } {
    return this.#pinned ? { transaction: this.#pinned } : {};
  }

  *range<T extends TableName>(
    table: T,
    start?: Key,
    end?: Key,
    window?: RowWindow,
  ): Iterable<{ key: KeyOf<T>; row: RowOf<T> }> {
    const options = { start, end, ...window, ...this.#at } as RangeOptions;
    for (const { key, value } of this.#table(table).getRange(options)) yield { key, row: value };
  }

  floor<T extends TableName>(table: T, key: KeyOf<T> & number): { key: KeyOf<T>; row: RowOf<T> } | undefined {
    for (const { key: found, value } of this.#table(table).getRange({
      start: key,
      reverse: true,
      limit: 1,
      ...this.#at,
    }))
      return { key: found, row: value };
    return undefined;
  }

  batchAt(index: number): Batch | undefined {
    const batch = this.#batchBefore(index);
    return batch && index < batch.firstIndex + batch.count ? batch : undefined;
  }

  lastBatch(): Batch | undefined {
    return this.#batchBefore(Number.MAX_SAFE_INTEGER);
  }

  #batchBefore(index: number): Batch | undefined {
    for (const { key, value } of this.#batches.getRange({ start: index, reverse: true, limit: 1, ...this.#at }))
      return new Batch(key, value);
    return undefined;
  }

  tile(treeVersion: 1 | 2, level: number, index: number): Buffer | undefined {
    return this.#tiles.get([treeVersion, level, index], this.#at);
  }

  async commit(changes: ChangeSet): Promise<void> {
    const { batch, firstIndex } = changes;
    const write = () => {
      if (batch) this.#batches.put(firstIndex, batch);
      for (const tile of changes.tiles)
        this.#tiles.put([tile.treeVersion, tile.level, tile.index], Buffer.from(tile.hashes));
      for (const change of changes.rows) this.#put(change);
    };
    if (!batch) return this.#transaction(write);
    // A writer that is behind was at the end of some batch, where the other writer's next batch now begins.
    const written = await this.#committed(this.#batches.ifNoExists(firstIndex, write));
    if (!written)
      throw new CairnlogError("storage-failed", "Another process has appended to this log. Only one may write it.");
    await this.#env.flushed;
  }

  #put({ table, key, row }: RowChange): void {
    const records = this.#table(table);
    if (row === undefined) records.remove(key as never);
    else records.put(key as never, row as never);
  }

  /** All writes made in `write`, as one transaction; resolves when they are on disk. */
  async #transaction(write: () => void): Promise<void> {
    await this.#committed(this.#env.batch(write));
    await this.#env.flushed;
  }

  /**
   * What `commit` gives. When the disk fails, lmdb rejects with an error that carries another promise, `commitError`, which
   * may be rejected with the disk's own error a moment later: that would end the process, too.
   */
  async #committed<T>(commit: Promise<T>): Promise<T> {
    try {
      return await commit;
    } catch (cause) {
      (cause as { commitError?: Promise<unknown> }).commitError?.catch(() => {});
      throw cause;
    }
  }

  #postingTables(blocks: Database<Buffer, [number, number]>): PostingTables {
    const runs = this.#table("runs");
    const put = (run: number, list: readonly [number, Buffer][]) => {
      for (const [block, records] of list) blocks.put([run, block], records);
    };
    // Its type leaves the options out.
    const readBlock: Database<Buffer, [number, number]>["get"] = blocks.getBinaryFast.bind(blocks);
    return {
      block: (run, number) => readBlock([run, number], this.#at),
      runs: () => [...runs.getRange(this.#at)].map(({ key, value }) => ({ ...value, id: key })),
      removeOrphans: (live) => {
        // From run to run, not from block to block: the cost is that of the runs, of which there are few.
        for (let next = 1; ; ) {
          const [first] = [...blocks.getKeys({ start: [next, 0], limit: 1 })];
          if (!first) return next;
          const run = first[0];
          next = run + 1;
          if (!live.has(run)) for (const key of blocks.getKeys({ start: first, end: [next, 0] })) blocks.remove(key);
        }
      },
      writeBlocks: (run, list) => this.#transaction(() => put(run, list)),
      writeRun: (run, list, row, replaced) =>
        this.#transaction(() => {
          put(run, list);
          runs.put(run, row);
          for (const old of replaced) runs.remove(old);
        }),
      removeBlocks: async (run, count) => {
        for (let from = 0; from < count; from += CLEANUP_ROWS)
          await this.#transaction(() => {
            for (let block = from; block < Math.min(count, from + CLEANUP_ROWS); block++) blocks.remove([run, block]);
          });
      },
    };
  }

  snapshot(): Snapshot {
    const transaction = this.#env.useReadTransaction();
    const table = <T extends TableName>(name: T) => this.#table(name);
    return {
      get: (name, key) => table(name).get(key, { transaction }),
      *range(name, start, end, window) {
        const rows = table(name).getRange({ start, end, ...window, transaction } as RangeOptions);
        for (const { key, value } of rows) yield { key, row: value };
      },
      close: () => transaction.done(),
    };
  }

  otherProcesses(): number[] {
    this.#env.readerCheck();
    const pids = [...this.#env.readerList().matchAll(/^\s*(\d+)\s/gm)].map(([, pid]) => Number(pid));
    return [...new Set(pids)].filter((pid) => pid !== process.pid);
  }

  pin(): void {
    const previous = this.#pinned;
    // Otherwise it would hand out the transaction that is in use.
    this.#env.resetReadTxn();
    this.#pinned = this.#env.useReadTransaction();
    previous?.done();
  }

  refresh(): void {
    this.#env.resetReadTxn();
  }

  async close(): Promise<void> {
    this.#pinned?.done();
    await this.#env.close();
  }
}
