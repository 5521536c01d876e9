/**
 * Where runs of postings are kept: an environment of their own beside the log's. Merging frees and takes thousands of
 * pages at a time, and LMDB looks through all that are free for the neighbouring pages that a batch needs: in one file
 * with the batches, a commit of 64 entries cost 36 µs of CPU an entry in a log of 1,000,000, where it is 10 without.
 *
 * Postings are written after the entries that they are of are on disk, so they may lag behind them, also after a power
 * failure, and never run ahead.
 */
import type { Database, Transaction } from "lmdb";
import { type Environment, openEnvironment, RECORDS, transact, unheard, view } from "../lmdb/environment.js";
import type { RunRow } from "../rows.js";
import { type BlockSource, fencesOf, type Run } from "./runs.js";

/** Rows removed per transaction when clearing up. */
const CLEANUP_ROWS = 256;

/** What `Postings` needs of the store. */
export interface PostingTables extends BlockSource {
  /** In no particular order. */
  runs(): Run[];
  /** Ids of the live runs, also of those whose rows cannot be decoded. */
  runIds(): number[];
  /** @throws an error when there is no such row, or it cannot be decoded */
  run(id: number): Run;
  /** Ids that blocks are filed under, ascending: those of live runs, and of runs that were not finished or are replaced. */
  filedIds(): number[];
  writeBlocks(run: number, blocks: readonly [number, Buffer][]): Promise<void>;
  /** Writes the last blocks and the row of a run and drops the rows it replaces, in one transaction. */
  writeRun(run: number, blocks: readonly [number, Buffer][], row: RunRow, replaced: readonly number[]): Promise<void>;
  /** Removes some blocks that are filed under `run`; resolves to whether there are more. */
  removeBlocks(run: number): Promise<boolean>;
  /** Drops every run: no posting is on disk then, and what a start reads of the entries takes their place. */
  removeRuns(): Promise<void>;
}

/** Open tables, and their environment. */
export interface PostingStore {
  readonly tables: PostingTables;
  readonly environment: Environment;
  /** Shows all reads that follow the moment of the newest commit, until the next call. */
  pin(): void;
  close(): Promise<void>;
}

/** Opens or creates the tables in the directory `path`. */
export function openPostings(path: string, mapSize: number, readOnly: boolean): PostingStore {
  const environment = openEnvironment({ path, mapSize, maxDbs: 2, readOnly, noSync: false });
  const runs: Database<RunRow, number> = environment.openDB({ name: "runs", ...RECORDS });
  const blocks: Database<Buffer, [number, number]> = environment.openDB({ name: "postings", encoding: "binary" });
  let pinned: Transaction | undefined;
  const at = () => (pinned ? { transaction: pinned } : {});
  const put = (run: number, list: readonly [number, Buffer][]) => {
    for (const [block, records] of list) unheard(blocks.put([run, block], records));
  };
  const live = (id: number, row: RunRow): Run => ({ ...row, id, fences: fencesOf(row.fences) });

  const tables: PostingTables = {
    block: (run, number) => view(blocks, [run, number], at()),
    runs: () => [...runs.getRange(at())].map(({ key, value }) => live(key, value)),
    runIds: () => [...runs.getKeys(at())],
    run: (id) => live(id, runs.get(id, at())!),
    filedIds() {
      // From run to run, not from block to block: the cost is that of the runs, of which there are few.
      const ids: number[] = [];
      for (let next = 0; ; next = ids.at(-1)! + 1) {
        const [first] = [...blocks.getKeys({ start: [next, 0], limit: 1 })];
        if (!first) return ids;
        ids.push(first[0]);
      }
    },
    writeBlocks: (run, list) => transact(environment, () => put(run, list)),
    writeRun: (run, list, row, replaced) =>
      transact(environment, () => {
        put(run, list);
        unheard(runs.put(run, row));
        for (const old of replaced) unheard(runs.remove(old));
      }),
    async removeBlocks(run) {
      const keys = [...blocks.getKeys({ start: [run, 0], end: [run + 1, 0], limit: CLEANUP_ROWS })];
      await transact(environment, () => {
        for (const key of keys) unheard(blocks.remove(key));
      });
      return keys.length === CLEANUP_ROWS;
    },
    removeRuns: () =>
      transact(environment, () => {
        for (const id of runs.getKeys()) unheard(runs.remove(id));
      }),
  };
  return {
    tables,
    environment,
    pin() {
      const previous = pinned;
      // Otherwise it would hand out the transaction that is in use.
      environment.resetReadTxn();
      pinned = environment.useReadTransaction();
      previous?.done();
    },
    async close() {
      pinned?.done();
      await environment.close();
    },
  };
}
