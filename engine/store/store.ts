/**
 * The store: an LMDB environment, opened by one writer, and a second environment for postings in a directory below it.
 * It knows tables, but nothing about logs.
 *
 * Durability: `overlappingSync` is off, so a transaction is visible to readers only after it is on disk. So no reader
 * can see a tree head that a power failure takes back, which would be a fork. (It is also faster for one commit at a
 * time: 0.33 ms instead of 0.45 ms for put and flush on the machine where this was measured.)
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Database, RangeOptions, Transaction } from "lmdb";
import { closeAll } from "../base/closing.js";
import { CairnlogError } from "../base/error.js";
import { isPresent } from "../base/files.js";
import {
  type ChangeSet,
  type JournalPosition,
  ORIGIN,
  type PlacedBatch,
  packPosition,
  type RowChange,
  type TileChange,
  unpackPosition,
} from "./changeset.js";
import type { RowWindow, Snapshot, Store, StoreUsage, TileKey } from "./contract.js";
import { type BatchExtent, BatchExtents } from "./lmdb/batch-extents.js";
import {
  type Environment,
  fileBytes,
  oldestReaderOf,
  openEnvironment,
  openTables,
  RECORDS,
  settled,
  unheard,
  view,
} from "./lmdb/environment.js";
import { encodedBytes, Growth } from "./lmdb/growth.js";
import { DEFAULT_MIN_FREE_BYTES, failedRead, Room, StoreHealth } from "./lmdb/health.js";
import { DATA_FILE } from "./lmdb/inspect.js";
import { Reserve } from "./lmdb/reserve.js";
import type { PostingTables, Rfc6962Rows } from "./postings/contract.js";
import { openPostings, type PostingStore } from "./postings/tables.js";
import { Batch, storedBatch } from "./schema/batch.js";
import { BYTE_TABLES, type Key, type KeyOf, RECORD_TABLES, type RowOf, type TableName } from "./schema/schema.js";

/**
 * Address space reserved for the map: 256 GiB, about 150 million entries. It costs nothing until it is used. A process
 * has 128 TiB of address space, and LMDB crashes when it runs out, so many logs in one process must share it.
 */
const DEFAULT_MAP_SIZE = 2 ** 38;

export type * from "./contract.js";

/** Milliseconds between two looks of a writer for readers whose process has ended. */
const CLEARING_MS = 5_000;
/** Key of the one row of the table `journal`. */
const POSITION = "position";
/** What lmdb puts before a value that has a version. */
const VERSION_BYTES = 8;
/** Directory of the postings of the log in the directory `path`. */
export const postingsFolder = (path: string): string => `${path}/postings`;

export interface StoreOptions {
  /** Directory; created if it does not exist. */
  readonly path: string;
  /** Bytes of address space, which is also the maximum size of the data. */
  readonly mapSize?: number;
  /** Free bytes of the disk below which writes are refused; 64 MiB if absent. */
  readonly minFreeBytes?: number;
  /** For a process that does not hold the writer's slot. */
  readonly readOnly?: boolean;
  /**
   * For data that is derived, compared and deleted: writes are not flushed, so a crash may leave the files in any
   * state.
   */
  readonly isScratch?: boolean;
  /** The caller has looked at the files itself (`inspectEnvironment`), or they are open in this process. */
  readonly isInspected?: boolean;
  /**
   * Nothing else has the log open, in this process or another, until it is closed: it is being built. Then the file of the
   * postings is opened again from time to time, so that its pages do not all count as memory of this process.
   */
  readonly isUnshared?: boolean;
}

const ADVICE =
  "Nothing was written. Stop the service and keep a copy of the data directory. cairnlog fsck says what can be read, and cairnlog restore restores the newest backup.";

/**
 * Opens or creates the environment at `options.path`.
 * @throws CairnlogError `corrupt-log` if its file is damaged or missing; `storage-failed`; `not-found` if it does not
 *   exist and is only to be read
 */
export function openStore(options: StoreOptions): Store {
  return coded(`The data directory ${options.path} cannot be opened`, () => new LmdbStore(options));
}

function coded<T>(message: string, open: () => T): T {
  try {
    return open();
  } catch (cause) {
    if (cause instanceof CairnlogError) throw cause;
    throw new CairnlogError("storage-failed", `${message}: ${(cause as Error).message}.`, { cause });
  }
}

/** `batch`, unless it ends before the entry at `index`. */
const holding = (batch: Batch | undefined, index: number): Batch | undefined =>
  batch && index < batch.firstIndex + batch.count ? batch : undefined;

const stored = ({ firstIndex, batch }: PlacedBatch): PlacedBatch => ({ firstIndex, batch: storedBatch(batch) });

/** What a change set may add to the file. */
function growthOf({ position, batches, tiles, rows }: ChangeSet): Growth {
  const growth = new Growth();
  if (position) growth.add("journal", POSITION, VERSION_BYTES + packPosition(position).length);
  for (const { firstIndex, batch } of batches) growth.add("batches", firstIndex, batch.length);
  for (const { treeVersion, level, index, hashes } of tiles)
    growth.add("tiles", [treeVersion, level, index], hashes?.length ?? null);
  for (const { table, key, row } of rows) growth.add(table, key, row === undefined ? null : encodedBytes(row));
  return growth;
}

/** The environment of the entries and its tables. */
interface Handles {
  readonly environment: Environment;
  readonly records: ReadonlyMap<TableName, Database<unknown, Key>>;
  readonly batches: Database<Buffer, number>;
  readonly tiles: Database<Buffer, TileKey>;
  readonly journal: Database<Buffer, string> | undefined;
  readonly places: BatchExtents;
  /** Which file of data it is. Known of a reader's. */
  readonly file: number | undefined;
}

class LmdbStore implements Store {
  readonly health = new StoreHealth();
  readonly #options: Required<Omit<StoreOptions, "minFreeBytes">>;
  readonly #room: Room;
  #handles: Handles;
  /** Those of files that were replaced. A snapshot may still read them. */
  readonly #left: Handles[] = [];
  /** Opened when postings are first needed; verifying and deriving never need them. */
  #postings: PostingStore | undefined;
  #reserve: Reserve | undefined;
  #clearing: NodeJS.Timeout | undefined;
  /** The moment that all reads see; without one, each read sees the newest commit. */
  #pinned: Transaction | undefined;

  constructor(options: StoreOptions) {
    const { path, mapSize = DEFAULT_MAP_SIZE, readOnly = false, isScratch = false } = options;
    const { minFreeBytes = DEFAULT_MIN_FREE_BYTES, isInspected = false, isUnshared = false } = options;
    this.#options = { path, mapSize, readOnly, isScratch, isInspected, isUnshared };
    // What is thrown away may fill the disk: a check is wanted most when the disk is full.
    this.#room = new Room(path, isScratch ? 0 : minFreeBytes);
    this.#handles = this.#open();
  }

  #open(): Handles {
    const { path, mapSize, readOnly, isScratch, isInspected } = this.#options;
    const maxDbs = RECORD_TABLES.length + BYTE_TABLES.length;
    const advice = isScratch || isInspected ? null : ADVICE;
    // Postings are made only after this environment is on disk.
    const mustExist = isPresent(postingsFolder(path));
    const file = this.#file;
    const environment = openEnvironment({ path, mapSize, maxDbs, readOnly, noSync: isScratch, advice, mustExist });
    const bytes = <K extends Key>(name: (typeof BYTE_TABLES)[number], options = {}) =>
      environment.openDB<Buffer, K>({ name, encoding: "binary", ...options });
    return openTables({ environment, readOnly }, () => ({
      environment,
      records: new Map(RECORD_TABLES.map((name) => [name, environment.openDB({ name, ...RECORDS })])),
      batches: bytes("batches"),
      tiles: bytes("tiles"),
      // The version of this row is the condition of every commit.
      journal: bytes("journal", { useVersions: true }),
      places: new BatchExtents(path),
      file,
    }));
  }

  get source(): object {
    return this.#handles;
  }

  get #file(): number | undefined {
    const { path, readOnly } = this.#options;
    return readOnly ? statSync(join(path, DATA_FILE), { throwIfNoEntry: false })?.ino : undefined;
  }

  /** Opens the files that the writer has put in the place of those that are open. */
  #takeReplaced(): void {
    const file = this.#file;
    if (file === undefined || file === this.#handles.file) return;
    const next = this.#open();
    this.#pinned?.done();
    this.#pinned = undefined;
    this.#left.push(this.#handles);
    this.#handles = next;
    this.#postings?.reopen();
  }

  get #openedPostings(): PostingStore {
    if (this.#postings) return this.#postings;
    const { path } = this.#options;
    this.#postings = coded(`The postings in ${path} cannot be opened`, () =>
      openPostings({ ...this.#options, path: postingsFolder(path) }, this.#room, this.health),
    );
    return this.#postings;
  }

  get postings(): PostingTables {
    return this.#openedPostings.tables;
  }

  get words(): PostingTables {
    return this.#openedPostings.words;
  }

  get titles(): PostingTables {
    return this.#openedPostings.titles;
  }

  get rfc6962(): Rfc6962Rows {
    return this.#openedPostings.rfc6962;
  }

  /** Undefined in a read-only environment if the log's writer does not have this table yet. */
  #table<T extends TableName>(name: T): Database<RowOf<T>, KeyOf<T>> | undefined {
    this.health.check();
    return this.#handles.records.get(name) as Database<RowOf<T>, KeyOf<T>> | undefined;
  }

  get<T extends TableName>(table: T, key: KeyOf<T>): RowOf<T> | undefined {
    const rows = this.#table(table);
    // Without a closure: every command reads several rows.
    try {
      return rows?.get(key, this.#at);
    } catch (cause) {
      throw failedRead(cause);
    }
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
    const rows = this.health.readingEach(() => this.#table(table)?.getRange(options) ?? []);
    for (const { key, value } of rows) yield { key, row: value };
  }

  floor<T extends TableName>(table: T, key: KeyOf<T> & number): { key: KeyOf<T>; row: RowOf<T> } | undefined {
    const options = { start: key, reverse: true, limit: 1, ...this.#at };
    const rows = this.health.readingEach(() => this.#table(table)?.getRange(options) ?? []);
    for (const { key: found, value } of rows) return { key: found, row: value };
    return undefined;
  }

  keys<T extends TableName>(table: T, start?: Key): Iterable<KeyOf<T>> {
    const options = { ...(start === undefined ? {} : { start }), ...this.#at } as RangeOptions;
    return this.health.readingEach(() => this.#table(table)?.getKeys(options) ?? []);
  }

  batchAt(index: number): Batch | undefined {
    return holding(
      this.#batchBefore(index, (view) => Buffer.from(view)),
      index,
    );
  }

  batchView(index: number): Batch | undefined {
    return holding(
      this.#batchBefore(index, (view) => view),
      index,
    );
  }

  batchPlace(index: number): BatchExtent | undefined {
    this.health.check();
    const place = this.#handles.places.at(index);
    return (place === undefined ? this.#findPlace(index) : place) ?? undefined;
  }

  /** While a transaction reads, LMDB reuses no page that was in use when it began, or since. */
  #findPlace(index: number): BatchExtent | null | undefined {
    // Places are looked for in the file that has the name now.
    if (this.#file !== this.#handles.file) return undefined;
    const transaction = this.#pinned ? null : this.health.reading(() => this.#handles.environment.useReadTransaction());
    const place = this.#handles.places.find(index);
    transaction?.done();
    return place;
  }

  lastBatch(): Batch | undefined {
    return this.#batchBefore(Number.MAX_SAFE_INTEGER, (view) => Buffer.from(view));
  }

  batchKeys(): Iterable<number> {
    return this.health.readingEach(() => this.#handles.batches.getKeys());
  }

  /** Reads the key first, then its row: 7 µs for a batch of 64 entries. A range of one row took 21 µs. */
  #batchBefore(index: number, take: (view: Buffer) => Buffer): Batch | undefined {
    return this.health.reading(() => {
      for (const key of this.#handles.batches.getKeys({ start: index, reverse: true, limit: 1, ...this.#at })) {
        const row = view(this.#handles.batches, key, this.#at);
        return row && new Batch(key, take(row));
      }
      return undefined;
    });
  }

  tile(treeVersion: 1 | 2, level: number, index: number): Buffer | undefined {
    return this.health.reading(() => this.#handles.tiles.get([treeVersion, level, index], this.#at));
  }

  tileView(treeVersion: 1 | 2, level: number, index: number): Buffer | undefined {
    return this.health.reading(() => view(this.#handles.tiles, [treeVersion, level, index], this.#at));
  }

  tileKeys(start?: TileKey): Iterable<TileKey> {
    return this.health.readingEach(() => this.#handles.tiles.getKeys(start === undefined ? {} : { start }));
  }

  position(): JournalPosition {
    const entry = this.health.reading(() => this.#handles.journal?.getEntry(POSITION, this.#at));
    return entry ? unpackPosition(entry.version!, entry.value) : ORIGIN;
  }

  async commit(packed: ChangeSet): Promise<void> {
    const changes = { ...packed, batches: packed.batches.map(stored) };
    const { position, batches } = changes;
    this.checkRoom();
    const journal = this.#handles.journal!;
    const write = () => {
      if (position) unheard(journal.put(POSITION, packPosition(position), position.sequence));
      for (const { firstIndex, batch } of batches) unheard(this.#handles.batches.put(firstIndex, batch));
      for (const tile of changes.tiles) this.#putTile(tile);
      for (const change of changes.rows) this.#put(change);
    };
    await this.#openedReserve.spend(growthOf(changes), () => this.#transact(changes, write));
  }

  async #transact({ after, batches: [first] }: ChangeSet, write: () => void): Promise<void> {
    const journal = this.#handles.journal!;
    let written: Promise<boolean> | undefined;
    const compareAndSwap = () => {
      written = after ? journal.ifVersion(POSITION, after, write) : journal.ifNoExists(POSITION, write);
    };
    // During an upgrade, a version that knows no position may still write. It also appends at the end of the log, so
    // refuse to put a batch where one already exists.
    if (first) unheard(this.#handles.batches.ifNoExists(first.firstIndex, compareAndSwap));
    else compareAndSwap();
    if (!(await settled(written!, this.health)))
      throw new CairnlogError("storage-failed", "Another process has written to this log. Only one may write it.");
    await settled(this.#handles.environment.flushed, this.health);
  }

  /** Opened with the first commit: readers and checks need none. */
  get #openedReserve(): Reserve {
    this.#clearing ??= setInterval(() => this.#clearDeadReaders(), CLEARING_MS).unref();
    this.#reserve ??= new Reserve(this.#handles.environment, this.#options.path);
    return this.#reserve;
  }

  #putTile({ treeVersion, level, index, hashes }: TileChange): void {
    const key: TileKey = [treeVersion, level, index];
    unheard(hashes ? this.#handles.tiles.put(key, Buffer.from(hashes)) : this.#handles.tiles.remove(key));
  }

  #put({ table, key, row }: RowChange): void {
    const records = this.#table(table)!;
    unheard(row === undefined ? records.remove(key as never) : records.put(key as never, row as never));
  }

  snapshot(): Snapshot {
    const transaction = this.health.reading(() => this.#handles.environment.useReadTransaction());
    const { records } = this.#handles;
    const table = <T extends TableName>(name: T) => records.get(name) as Database<RowOf<T>, KeyOf<T>> | undefined;
    const readingEach = <T>(read: () => Iterable<T>) => this.health.readingEach(read);
    return {
      get: (name, key) => this.health.reading(() => table(name)?.get(key, { transaction })),
      *range(name, start, end, window) {
        const options = { start, end, ...window, transaction } as RangeOptions;
        const rows = readingEach(() => table(name)?.getRange(options) ?? []);
        for (const { key, value } of rows) yield { key, row: value };
      },
      close: () => {
        if (this.health.isUsable) transaction.done();
      },
    };
  }

  otherProcesses(): number[] {
    this.health.check();
    this.#handles.environment.readerCheck();
    const pids = [...this.#handles.environment.readerList().matchAll(/^\s*(\d+)\s/gm)].map(([, pid]) => Number(pid));
    return [...new Set(pids)].filter((pid) => pid !== process.pid);
  }

  pin(): void {
    this.health.check();
    this.#takeReplaced();
    // Pin the postings first. If their moment is before that of the entries, they are only behind; if it were after,
    // they would be ahead. A log that was imported and never opened has no postings yet.
    this.pinPostings();
    const previous = this.#pinned;
    // Without this, lmdb would return the transaction that is in use.
    this.#handles.environment.resetReadTxn();
    this.#pinned = this.health.reading(() => this.#handles.environment.useReadTransaction());
    previous?.done();
  }

  pinPostings(): void {
    this.health.check();
    if (this.#postings || isPresent(postingsFolder(this.#options.path))) this.#openedPostings.pin();
  }

  unpin(): void {
    if (this.health.failure) return;
    this.#postings?.unpin();
    this.#pinned?.done();
    this.#pinned = undefined;
    this.#handles.environment.resetReadTxn();
  }

  /**
   * Takes the places of readers whose process has ended. Until then no page is used again that was freed since they began, and
   * the file grows with each commit. Looking costs less than a microsecond.
   */
  #clearDeadReaders(): void {
    if (this.health.failure) return;
    this.#handles.environment.readerCheck();
    this.#postings?.environment.readerCheck();
  }

  usage(): StoreUsage {
    this.health.check();
    const { mapSize, numReaders } = this.#handles.environment.getStats() as { mapSize: number; numReaders: number };
    const environments = [this.#handles.environment, this.#openedPostings.environment];
    const bytes = environments.reduce((sum, environment) => sum + fileBytes(environment), 0);
    const oldestReader = Math.max(...environments.map(oldestReaderOf));
    return { fileBytes: bytes, mapBytes: mapSize, readers: numReaders, oldestReader };
  }

  refresh(): void {
    this.health.check();
    this.#postings?.environment.resetReadTxn();
    this.#handles.environment.resetReadTxn();
  }

  checkRoom(): void {
    this.health.check();
    this.#room.check();
  }

  get isTight(): boolean {
    return this.#room.isTight;
  }

  async close(): Promise<void> {
    clearInterval(this.#clearing);
    const places = [...this.#left, this.#handles].map((handles) => () => handles.places.close());
    await closeAll(
      () => this.#reserve?.close(),
      () => this.#postings?.close(),
      // After a failure LMDB must not be called any more; the end of the process closes its files.
      () => this.health.failure || this.#closeEnvironments(),
      ...places,
    );
  }

  #closeEnvironments(): Promise<void> {
    this.health.closed();
    this.#pinned?.done();
    this.#pinned = undefined;
    return closeAll(...[...this.#left, this.#handles].map((handles) => () => handles.environment.close()));
  }
}
