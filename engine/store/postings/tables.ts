/**
 * Stores runs of postings in an environment of their own beside the log's. Merging frees and takes thousands of pages
 * at a time, and LMDB searches all free pages for the contiguous pages that a batch needs. In one file with the
 * batches, a commit of 64 entries cost 36 µs of CPU an entry in a log of 1,000,000; in a file of its own it costs 10.
 *
 * Postings are written after their entries are on disk. So they may be behind the entries, also after a power failure,
 * but are never ahead of them.
 */
import type { Database, Transaction } from "lmdb";
import { closeAll } from "../../base/closing.js";
import {
  type Environment,
  openEnvironment,
  openTables,
  RECORDS,
  transact,
  unheard,
  view,
} from "../lmdb/environment.js";
import { encodedBytes, Growth } from "../lmdb/growth.js";
import { failedRead, type Room, type StoreHealth } from "../lmdb/health.js";
import { Reserve } from "../lmdb/reserve.js";
import type { RunRow } from "../schema/rows.js";
import { HASH } from "../schema/schema.js";
import type { PostingTables, Rfc6962Rows } from "./contract.js";
import { fencesOf, type StoredRun } from "./runs.js";

// The nodes of the RFC 6962 tree (`engine/log/rfc6962`) on disk, in the environment of the postings. Both are derived from
// the entries and written after them, so they may be behind the entries, and both can be removed and made again.

/** Key of the extent: 8 bytes of size, big-endian, and the hash of the last leaf. Level 0 has no tiles here. */
const EXTENT: [number, number] = [0, 0];
const SIZE_BYTES = 8;
/** Name of the table. */
const RFC6962_TABLE = "lens";

/**
 * @param handles returns the environment and the table, which is undefined in a read-only environment that no writer of
 *   this version has opened: then it is empty
 * @param write runs a transaction that adds at most so much to the file
 */
function rfc6962Rows(
  handles: () => {
    readonly environment: Environment;
    readonly rfc6962: Database<Buffer, [number, number]> | undefined;
  },
  health: StoreHealth,
  write: (growth: Growth, changes: () => void) => Promise<void>,
): Rfc6962Rows {
  const fresh = () => {
    health.check();
    // The writer may be another thread, and this one may not have yielded since it wrote.
    handles().environment.resetReadTxn();
  };
  const table = () => handles().rfc6962;
  return {
    tile(level, index) {
      fresh();
      return health.reading(() => {
        const db = table();
        return db && view(db, [level, index], {});
      });
    },
    extent() {
      fresh();
      const row = health.reading(() => table()?.get(EXTENT));
      if (row?.length !== SIZE_BYTES + HASH) return undefined;
      return { size: Number(row.readBigUInt64BE()), lastLeaf: row.subarray(SIZE_BYTES) };
    },
    *tileKeys() {
      fresh();
      yield* health.readingEach(() => table()?.getKeys({ start: [1, 0] }) ?? []);
    },
    write(tiles, { size, lastLeaf }) {
      const row = Buffer.alloc(SIZE_BYTES + HASH);
      row.writeBigUInt64BE(BigInt(size));
      row.set(lastLeaf, SIZE_BYTES);
      const growth = new Growth().add(RFC6962_TABLE, EXTENT, row.length);
      for (const { level, index, hashes } of tiles) growth.add(RFC6962_TABLE, [level, index], hashes.length);
      return write(growth, () => {
        for (const { level, index, hashes } of tiles) unheard(table()!.put([level, index], Buffer.from(hashes)));
        unheard(table()!.put(EXTENT, row));
      });
    },
    clear() {
      const keys = [...table()!.getKeys()];
      const growth = new Growth();
      for (const key of keys) growth.add(RFC6962_TABLE, key, null);
      return write(growth, () => {
        for (const key of keys) unheard(table()!.remove(key));
      });
    },
  };
}

/** Rows removed per transaction when clearing up. */
const CLEANUP_ROWS = 256;
/** Transactions after which the file of an unshared log is opened again. Removals touch the most: 4 MiB each. */
const RENEWED_WRITES = 8;

/** Open tables and their environment. */
export interface PostingStore {
  readonly tables: PostingTables;
  /** A second set of runs: words of titles that the first set lacks. */
  readonly words: PostingTables;
  /** What an older version has filed instead of them. */
  readonly titles: PostingTables;
  /** The nodes of the RFC 6962 tree. They do not follow `pin`: they are only added to, and a reader needs the newest. */
  readonly rfc6962: Rfc6962Rows;
  /** Ask for it each time: that of an unshared log is replaced. */
  readonly environment: Environment;
  /** All following reads show the moment of the newest commit, until the next call. */
  pin(): void;
  /** Gives back what `pin` holds. */
  unpin(): void;
  /** Opens the file that the writer has put in the place of the one that is open, which is closed with it. For a reader. */
  reopen(): void;
  close(): Promise<void>;
}

/** The options of the store that these tables belong to. */
interface PostingOptions {
  /** Directory. */
  readonly path: string;
  readonly mapSize: number;
  readonly readOnly: boolean;
  /** The caller has looked at the file itself. */
  readonly isInspected: boolean;
  /** As in `StoreOptions`. */
  readonly isUnshared: boolean;
}

/** The environment and its tables. In a read-only environment those are missing that its writer has not made. */
interface Handles {
  readonly environment: Environment;
  readonly runs: Database<RunRow, number>;
  readonly postings: Database<Buffer, [number, number]>;
  readonly wordRuns: Database<RunRow, number>;
  readonly words: Database<Buffer, [number, number]>;
  readonly titleRuns: Database<RunRow, number>;
  readonly titles: Database<Buffer, [number, number]>;
  readonly rfc6962: Database<Buffer, [number, number]>;
}

const ADVICE =
  "Postings follow from the entries, and nothing is lost. Stop the service, and make them anew: cairnlog fsck --rebuild.";

/**
 * Opens or creates the tables in a directory.
 * @throws CairnlogError `corrupt-log` if the file is damaged; `storage-failed`
 */
export function openPostings(options: PostingOptions, room: Room, health: StoreHealth): PostingStore {
  const { path, isUnshared } = options;
  let handles = openHandles(options);
  let pinned: Transaction | undefined;
  let reserve: Reserve | undefined;
  const left: Environment[] = [];
  let writes = 0;
  let last: Promise<unknown> = Promise.resolve();
  /** Unmaps the file: merges and removals read all of it in the end, and the pages count as memory of this process. */
  const renew = async () => {
    await reserve?.close();
    reserve = undefined;
    await handles.environment.close();
    handles = openHandles({ ...options, isInspected: true });
  };
  const spend = async (growth: Growth, changes: () => void) => {
    room.check();
    const { environment } = handles;
    reserve ??= new Reserve(environment, path);
    await reserve.spend(growth, () => transact(environment, health, changes));
    if (isUnshared && ++writes % RENEWED_WRITES === 0) await renew();
  };
  const write = (growth: Growth, changes: () => void) => {
    const written = last.then(() => spend(growth, changes));
    last = written.catch(() => {});
    return written;
  };
  const shared = { health, write, handles: () => handles, at: () => (pinned ? { transaction: pinned } : {}) };
  return {
    tables: runTables(["runs", "postings"], shared),
    words: runTables(["wordRuns", "words"], shared),
    titles: runTables(["titleRuns", "titles"], shared),
    rfc6962: rfc6962Rows(shared.handles, health, write),
    get environment() {
      return handles.environment;
    },
    pin() {
      const previous = pinned;
      // Without this, lmdb would return the transaction that is in use.
      handles.environment.resetReadTxn();
      pinned = health.reading(() => handles.environment.useReadTransaction());
      previous?.done();
    },
    unpin() {
      pinned?.done();
      pinned = undefined;
      handles.environment.resetReadTxn();
    },
    reopen() {
      pinned?.done();
      pinned = undefined;
      left.push(handles.environment);
      handles = openHandles(options);
    },
    async close() {
      await last;
      const closings = [...left, handles.environment].map((environment) => () => environment.close());
      const release = () => {
        pinned?.done();
        pinned = undefined;
      };
      await closeAll(
        () => reserve?.close(),
        () => health.failure || closeAll(() => health.closed(), release, ...closings),
      );
    },
  };
}

function openHandles({ path, mapSize, readOnly, isInspected }: PostingOptions): Handles {
  const advice = isInspected ? null : ADVICE;
  const environment = openEnvironment({ path, mapSize, maxDbs: 7, readOnly, noSync: false, advice, mustExist: false });
  const bytes = (name: string) => environment.openDB<Buffer, [number, number]>({ name, encoding: "binary" });
  const rows = (name: string) => environment.openDB<RunRow, number>({ name, ...RECORDS });
  return openTables({ environment, readOnly }, () => ({
    environment,
    runs: rows("runs"),
    postings: bytes("postings"),
    wordRuns: rows("wordRuns"),
    words: bytes("words"),
    titleRuns: rows("titleRuns"),
    titles: bytes("titles"),
    rfc6962: bytes(RFC6962_TABLE),
  }));
}

interface Shared {
  readonly health: StoreHealth;
  handles(): Handles;
  /** Where reads are made. */
  at(): { readonly transaction?: Transaction };
  write(growth: Growth, changes: () => void): Promise<void>;
}

/** One set of runs and their blocks. */
function runTables(
  [runsName, blocksName]:
    | readonly ["runs", "postings"]
    | readonly ["wordRuns", "words"]
    | readonly ["titleRuns", "titles"],
  { health, handles, at, write }: Shared,
): PostingTables {
  const runs = (): Database<RunRow, number> | undefined => handles()[runsName];
  const put = (run: number, list: readonly [number, Buffer][]) => {
    for (const [block, records] of list) unheard(handles()[blocksName].put([run, block], records));
  };
  const growthOf = (run: number, list: readonly [number, Buffer][]) => {
    const growth = new Growth();
    for (const [block, records] of list) growth.add(blocksName, [run, block], records.length);
    return growth;
  };
  const live = (id: number, row: RunRow): StoredRun => ({ ...row, id, fences: fencesOf(row.fences) });

  return {
    get source() {
      return handles();
    },
    block(run, number) {
      // Without a closure: a search reads a block of every run.
      health.check();
      try {
        return view(handles()[blocksName], [run, number], at());
      } catch (cause) {
        throw failedRead(cause);
      }
    },
    runIds: () => health.reading(() => [...(runs()?.getKeys(at()) ?? [])]),
    run: (id) => health.reading(() => live(id, runs()!.get(id, at())!)),
    filedIds() {
      health.check();
      // This skips from run to run, not from block to block. There are few runs, so it is cheap.
      const ids: number[] = [];
      for (let next = 0; ; next = ids.at(-1)! + 1) {
        const [first] = [...handles()[blocksName].getKeys({ start: [next, 0], limit: 1 })];
        if (!first) return ids;
        ids.push(first[0]);
      }
    },
    writeBlocks: (run, list) => write(growthOf(run, list), () => put(run, list)),
    writeRun(run, list, row, replaced) {
      const growth = growthOf(run, list).add(runsName, run, encodedBytes(row));
      for (const old of replaced) growth.add(runsName, old, null);
      return write(growth, () => {
        put(run, list);
        unheard(runs()!.put(run, row));
        for (const old of replaced) unheard(runs()!.remove(old));
      });
    },
    async removeBlocks(run) {
      health.check();
      const keys = [...handles()[blocksName].getKeys({ start: [run, 0], end: [run + 1, 0], limit: CLEANUP_ROWS })];
      const growth = new Growth();
      for (const key of keys) growth.add(blocksName, key, null);
      await write(growth, () => {
        for (const key of keys) unheard(handles()[blocksName].remove(key));
      });
      return keys.length === CLEANUP_ROWS;
    },
    removeRuns() {
      const ids = [...runs()!.getKeys()];
      const growth = new Growth();
      for (const id of ids) growth.add(runsName, id, null);
      return write(growth, () => {
        for (const id of ids) unheard(runs()!.remove(id));
      });
    },
  };
}
