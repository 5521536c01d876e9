/**
 * Postings: term → ascending leaf indexes. Postings of the newest few thousand entries are in memory. Older ones are in
 * sorted runs, which are merged geometrically in the background, one merge at a time on each level. A merge runs twice
 * as fast as postings come in. So it ends well before the next merge is due, and an append costs the same at every
 * point of a merge. A log never deletes, so no record is ever superseded.
 *
 * If we crash here: a run counts only if its row is in table `runs`. That row is written in the transaction that
 * removes the replaced rows. Blocks of a run without a row are removed after the next start, and where only a write has
 * failed, when entries come. The postings of all entries after the last run are computed again from the batches.
 */

import { turn } from "../../base/turns.js";
import type { RunRow } from "../schema/rows.js";
import { isFiltered } from "../schema/schema.js";
import type { PostingTables } from "./contract.js";
import { inMemory, joined, type PostingList, type Segment } from "./lists.js";
import { MergePace, mergeRuns } from "./merge.js";
import { mayContain, type Probe, probeOf } from "./run-format.js";
import { fencesOf, positionOf, type Run, RunBuilder, RunReader } from "./runs.js";
import { TermTable } from "./termtable.js";

/** Entries kept in memory before they become a run. */
export const FLUSH_ENTRIES = 4096;
/** Number of neighbouring runs of one level that become one run of the next. */
const MERGE_WIDTH = 4;
/** Terms of a run's entries for which memory is there from the beginning: 13 new ones for each, and some that came while it was made. */
const HELD_TERMS = 2 ** 16;
/**
 * Entries in memory from which on `close` writes them as a run. A start computes the postings of entries that are in no run
 * again: 4,096 entries take a quarter of a second and 30 MB.
 */
const CLOSE_ENTRIES = 1024;
/** Postings that a merge handles for each new posting. */
const MERGE_PACE = 2;
/** Runs of a level, above which its merges are late: as many as one merges, and as many that wait. */
const LATE_RUNS = 2 * MERGE_WIDTH;
/** Slices of a late merge in a turn of the event loop. Where turns are long, one slice in each does not keep up. */
const LATE_SLICES = 4;
/** Postings of a flush before the event loop gets a turn: about 1 ms of work. */
const FLUSH_SLICE = 4_096;
/** Blocks of a merge written in one transaction: half a megabyte. */
const MERGE_WRITE_BLOCKS = 32;

/** What the writer tells those who follow its postings from other threads. Its functions must not throw, and be quick. */
interface PostingsObserver {
  /** The postings of all entries below `to` are on their way into a run; later ones are kept apart from them. */
  frozen(to: number): void;
  /** The runs on disk are others than before. */
  runsChanged(): void;
}

interface MemoryRun {
  readonly from: number;
  to: number;
  readonly terms: TermTable;
}

/** For the filters of runs; null for a term of a kind that they do not hold. */
const filterProbe = (term: string): Probe | null => (isFiltered(term.charCodeAt(0)) ? probeOf(term) : null);

export class Postings {
  readonly #tables: PostingTables;
  #reader: RunReader;
  /** What the runs were read from. */
  #source: object;
  readonly #isReader: boolean;
  /** Oldest first; their ranges of leaf indexes join without gaps. */
  #runs: readonly Run[] = [];
  #nextRunId: number;
  /** A full table that is being written as a run. */
  #frozen: MemoryRun | null = null;
  #memory: MemoryRun;
  /** An empty table with the memory of the last flushed one, to be used again. */
  #spare: TermTable | null = null;
  #flushing: Promise<void> | null = null;
  /** Running merges by the level of their inputs. */
  readonly #merging = new Map<number, Promise<void>>();
  readonly #pace = new MergePace();
  /** Ids of blocks that belong to no run. */
  #leftOvers: number[];
  #clearing: Promise<void> | null = null;
  #closed = false;
  #failure: unknown;
  observer: PostingsObserver | null = null;

  /** @param isReader another thread or process writes the log: this one only reads the existing runs */
  constructor(tables: PostingTables, isReader = false) {
    this.#tables = tables;
    this.#source = tables.source;
    this.#reader = new RunReader(tables);
    this.#isReader = isReader;
    this.#runs = this.#storedRuns();
    const live = new Set(this.#runs.map(({ id }) => id));
    // To a reader, an unknown run may be one that the writer is making now, so a reader removes nothing.
    const filed = isReader ? [] : tables.filedIds();
    this.#leftOvers = filed.filter((id) => !live.has(id));
    this.#nextRunId = Math.max(0, ...filed, ...live) + 1;
    this.#memory = this.#afterRuns();
  }

  /**
   * The runs on disk. A run never changes and no later one of its file gets its id, so one that is held is not read again: with
   * 10,000,000 attestations that would be 100 MB of filters, several times a second.
   */
  #storedRuns(): readonly Run[] {
    const { source } = this.#tables;
    if (source !== this.#source) {
      this.#source = source;
      this.#reader = new RunReader(this.#tables);
      this.#runs = [];
    }
    const held = new Map(this.#runs.map((run) => [run.id, run]));
    const runs = this.#tables.runIds().map((id) => held.get(id) ?? this.#readRun(id));
    return runs.sort((a, b) => a.from - b.from);
  }

  /**
   * A reader holds no filters: it is hardly ever asked for what is not there, and each thread that reads would have 10
   * bytes an attestation. With 1,000,000 terms in 9 runs, on a busy machine, a term that is there took 25 to 45 µs with
   * filters and without them, and one that is not 120 µs instead of 7.
   */
  #readRun(id: number): Run {
    const run = this.#tables.run(id);
    return this.#isReader ? { ...run, bloom: null } : run;
  }

  #afterRuns(): MemoryRun {
    const from = this.#runs.at(-1)?.to ?? 0;
    return { from, to: from, terms: new TermTable(HELD_TERMS) };
  }

  /**
   * Reads the runs that the writer has made since, or those of another log that is in its place. Postings that were in memory,
   * and are in no run, must be added again.
   */
  reload(): void {
    const [before, source] = [this.#runs, this.#source];
    const runs = this.#storedRuns();
    const isSame = source === this.#source && runs.length === before.length;
    if (isSame && runs.every((run, i) => run === before[i])) return;
    this.#runs = runs;
    this.#frozen = null;
    this.#memory = this.#afterRuns();
  }

  /**
   * Keeps the postings that are held apart from later ones, as the writer has done. Only for a reader that `add`s what the
   * writer adds.
   */
  freeze(): void {
    this.#frozen = this.#memory;
    this.#memory = { from: this.#frozen.to, to: this.#frozen.to, terms: new TermTable(HELD_TERMS) };
  }

  /**
   * Reads the runs that the writer has made since, and lets go of the postings that they hold. Only for a reader that
   * `freeze`s what the writer froze; one that has not lets go of all of them, and must add those again that are in no run.
   */
  takeRuns(): void {
    this.#adopt();
    if ((this.#frozen ?? this.#memory).from === this.runsEnd) return;
    this.#frozen = null;
    this.#memory = this.#afterRuns();
  }

  /** Leaf index after the last entry whose postings are in a run. */
  get runsEnd(): number {
    return this.#runs.at(-1)?.to ?? 0;
  }

  /** Leaf index after the last entry whose run lacks the words of titles; 0 if every run has them. */
  get untitledEnd(): number {
    return this.#runs.findLast(({ folded }) => !folded)?.to ?? 0;
  }

  /** Leaf index after the last entry whose run lacks them even in the form of an older version. */
  get earlierUntitledEnd(): number {
    return this.#runs.findLast(({ folded, titled }) => !folded && !titled)?.to ?? 0;
  }

  /** Leaf index after the last entry whose postings are held. */
  get size(): number {
    return this.#memory.to;
  }

  /** Postings held, on disk and in memory. */
  get count(): number {
    let count = this.#runs.reduce((sum, run) => sum + run.count, 0);
    for (const memory of [this.#frozen, this.#memory]) count += memory?.terms.count ?? 0;
    return count;
  }

  get runCount(): number {
    return this.#runs.length;
  }

  /** Adds the postings of the entries [size, to), which are already on disk. */
  add(to: number, terms: TermTable): void {
    // A write failed earlier. Entries come in again, so try to write a run again too.
    this.#failure = undefined;
    this.#memory.terms.addAll(terms);
    this.#memory.to = to;
    this.#pace.feed(terms.count);
    this.#maintain();
  }

  /** Adds the postings of the entries [size, to), as `TermTable.pack` has written them with `base`. Only for a reader. */
  addPacked(to: number, words: Int32Array, base: number): void {
    this.#memory.terms.addPacked(words, base);
    this.#memory.to = to;
  }

  /**
   * The lowest leaf index of a term, or undefined. For an absent term, a run is read only after a false positive of its
   * filter.
   */
  first(term: string): number | undefined {
    const probe = filterProbe(term);
    for (const run of this.#runs) {
      if (probe && run.bloom && !mayContain(run.bloom, probe)) continue;
      const { first, end } = this.#reader.span(run, term);
      if (first < end) return this.#reader.indexAt(run, first);
    }
    return this.#frozen?.terms.first(term) ?? this.#memory.terms.first(term);
  }

  /** All entries of a term. */
  list(term: string): PostingList {
    const segments: Segment[] = [];
    const probe = filterProbe(term);
    for (const run of this.#runs) {
      if (probe && run.bloom && !mayContain(run.bloom, probe)) continue;
      const { first, end } = this.#reader.span(run, term);
      const length = end - first;
      if (length)
        segments.push({
          length,
          at: (rank) => this.#reader.indexAt(run, first + rank),
          seek: (index) =>
            index <= run.from ? 0 : index >= run.to ? length : this.#reader.rank(run, positionOf(term, index)) - first,
          read: (rank, count, into) => this.#reader.readIndexes(run, first + rank, count, into),
          fill: (bits, from, to) => this.#reader.fill(run, first, end, bits, from, to),
          mark: (indexes, marks) => this.#reader.mark(run, first, end, indexes, marks),
        });
    }
    for (const memory of [this.#frozen, this.#memory]) {
      const indexes = memory?.terms.list(term) ?? [];
      if (indexes.length) segments.push(inMemory(indexes));
    }
    return joined(segments);
  }

  /** The number of postings with a term from `low` to `high`, which are of one kind. Reads a block or two of each run. */
  rangeCount(low: string, high: string): number {
    let count = 0;
    for (const run of this.#runs) {
      const { first, end } = this.#reader.span(run, low, high);
      count += end - first;
    }
    for (const memory of [this.#frozen, this.#memory]) count += memory?.terms.rangeCount(low, high) ?? 0;
    return count;
  }

  /**
   * Leaf indexes of the postings with a term from `low` to `high`, which are of one kind, in no particular order; one as
   * often as it has such terms. In a run they are neighbours, however many terms they have.
   */
  range(low: string, high: string): number[] {
    const indexes: number[] = [];
    for (const run of this.#runs) {
      const { first, end } = this.#reader.span(run, low, high);
      this.#reader.readIndexes(run, first, end - first, indexes);
    }
    for (const memory of [this.#frozen, this.#memory]) memory?.terms.readRange(low, high, indexes);
    return indexes;
  }

  /** Sets the bit of each of them that has one: 3 ns each, where `range` and a sort take 100. */
  fillRange(low: string, high: string, bits: Int32Array): void {
    for (const run of this.#runs) {
      const { first, end } = this.#reader.span(run, low, high);
      this.#reader.fillRange(run, first, end, bits);
    }
    const held: number[] = [];
    for (const memory of [this.#frozen, this.#memory]) memory?.terms.readRange(low, high, held);
    for (const index of held) bits[index >>> 5]! |= 1 << (index & 31);
  }

  /** Whether a write failed, so that nothing more is written until entries are added. */
  get isStopped(): boolean {
    return this.#failure !== undefined;
  }

  /**
   * If more than `entries` are not in a run yet, waits until enough of them are on disk. If merges are late, waits for them: a
   * search reads every run.
   */
  async relieved(entries: number): Promise<void> {
    while (this.#flushing && this.#memory.to - this.#memory.from > entries) await this.#flushing;
    for (let level = this.#lateLevel(); level !== undefined; level = this.#lateLevel()) await this.#merging.get(level);
  }

  #lateLevel(): number | undefined {
    return [...this.#merging.keys()].find((level) => this.#isLate(level));
  }

  #isLate(level: number): boolean {
    return this.#runs.reduce((count, run) => count + (run.level === level ? 1 : 0), 0) > LATE_RUNS;
  }

  /** Waits until there is nothing to flush, merge or clear. @throws the error that stopped the background work */
  async settle(): Promise<void> {
    // After a start, nothing has begun yet.
    this.#maintain();
    for (let work = this.#work(); work.length; work = this.#work()) {
      this.#pace.release();
      await work[0];
    }
    if (this.#failure) throw this.#failure;
  }

  /**
   * Writes all that is in memory as a run, even if it is less than a run usually holds, and waits as `settle` does. The next
   * start then has nothing to file. @throws as `settle` does
   */
  async fileAll(): Promise<void> {
    await this.settle();
    if (this.#memory.to === this.#memory.from) return;
    this.#startFlush();
    await this.settle();
  }

  /**
   * Files what would delay the next start, and stops the other background work at its next pause; the next start finishes
   * an interrupted merge.
   */
  async close(): Promise<void> {
    while (this.#flushing) await this.#flushing;
    const isDue = this.#memory.to - this.#memory.from >= CLOSE_ENTRIES;
    if (isDue && !this.#failure && !this.#isReader) this.#startFlush();
    this.#closed = true;
    this.#pace.release();
    await Promise.all(this.#work());
  }

  #work(): Promise<void>[] {
    return [this.#flushing, ...this.#merging.values(), this.#clearing].filter((work) => work !== null);
  }

  #maintain(): void {
    if (this.#closed || this.#failure || this.#isReader) return;
    if (!this.#flushing && (this.#frozen || this.#memory.to - this.#memory.from >= FLUSH_ENTRIES)) this.#startFlush();
    for (let group = this.#mergeable(); group; group = this.#mergeable()) {
      const { level } = group[0]!;
      const id = this.#nextRunId++;
      const merge = this.#inBackground(
        this.#merge(id, group),
        () => this.#merging.delete(level),
        () => this.#forget(id),
      );
      this.#merging.set(level, merge);
    }
    if (!this.#clearing && this.#leftOvers.length)
      this.#clearing = this.#inBackground(this.#clear(), () => {
        this.#clearing = null;
      });
  }

  #startFlush(): void {
    this.#flushing = this.#inBackground(this.#flush(), () => {
      this.#flushing = null;
    });
  }

  /** @param failed called when a write has failed, and the runs are those on disk */
  #inBackground(work: Promise<void>, done: () => void, failed?: () => void): Promise<void> {
    return work
      .catch((cause: unknown) => {
        this.#failure = cause;
        try {
          this.#adopt();
          failed?.();
        } catch {
          // Where the disk cannot be read either, the failure of the write says why.
        }
      })
      .finally(() => {
        done();
        this.#maintain();
      });
  }

  /** A failed write may have reached the disk: the runs on disk are the ones that count. */
  #adopt(): void {
    this.#runs = this.#storedRuns();
    if (this.#frozen && this.#frozen.to <= (this.#runs.at(-1)?.to ?? 0)) this.#frozen = null;
    this.observer?.runsChanged();
  }

  /** Blocks of a merge that has failed are removed before the disk that was full for it is full for everything. */
  #forget(id: number): void {
    if (!this.#runs.some((run) => run.id === id)) this.#leftOvers.push(id);
  }

  /** Puts a run that is on disk in place of the runs that it was merged from. `#adopt` may have found it already. */
  #take(run: Run, replaced: readonly Run[]): void {
    const gone = new Set([run, ...replaced].map(({ id }) => id));
    this.#runs = [...this.#runs.filter(({ id }) => !gone.has(id)), run].sort((a, b) => a.from - b.from);
    this.observer?.runsChanged();
  }

  async #flush(): Promise<void> {
    const memory = this.#frozen ?? this.#memory;
    if (!this.#frozen) {
      this.#frozen = memory;
      this.#memory = { from: memory.to, to: memory.to, terms: this.#spare ?? new TermTable(HELD_TERMS) };
      this.#spare = null;
      this.observer?.frozen(memory.to);
    }
    const id = this.#nextRunId++;
    const blocks: [number, Buffer][] = [];
    const builder = new RunBuilder(memory.terms.filteredTerms, (block, records) => blocks.push([block, records]));
    for (const _ of memory.terms.writeTo(builder, FLUSH_SLICE)) await turn();
    const fences = builder.finish();
    const { count, bloom } = builder;
    await this.#writeRun(
      id,
      blocks,
      { level: 0, from: memory.from, to: memory.to, count, bloom, fences, folded: true, mapped: true },
      [],
    );
    this.#frozen = null;
    memory.terms.clear();
    this.#spare = memory.terms;
  }

  /**
   * The oldest neighbouring rows that have one level, are enough to merge, and are not being merged. Runs with the words of
   * titles are not merged with runs without: the result would lack them for some of its entries.
   */
  #mergeable(): readonly Run[] | null {
    for (let i = 0; i + MERGE_WIDTH <= this.#runs.length; i++) {
      const group = this.#runs.slice(i, i + MERGE_WIDTH);
      const { level, folded, titled } = group[0]!;
      const isAlike = (run: Run) => run.level === level && run.folded === folded && run.titled === titled;
      if (!this.#merging.has(level) && group.every(isAlike)) return group;
    }
    // A run of an older version has no bitmaps: it is written anew.
    const old = this.#runs.find(({ level, mapped }) => !mapped && !this.#merging.has(level));
    return old ? [old] : null;
  }

  async #merge(id: number, inputs: readonly Run[]): Promise<void> {
    const bloomTerms = Math.ceil(inputs.reduce((sum, { bloom }) => sum + (bloom?.length ?? 0) * 8, 0) / 10);
    let pending: [number, Buffer][] = [];
    const builder = new RunBuilder(bloomTerms, (block, records) => pending.push([block, records]));
    const { from, level, folded, titled } = inputs[0]!;
    const begun = this.#pace.fed;
    let slices = 0;
    for (const done of mergeRuns(this.#reader, inputs, builder)) {
      if (pending.length >= MERGE_WRITE_BLOCKS) {
        await this.#tables.writeBlocks(id, pending);
        pending = [];
      }
      const isLate = this.#isLate(level);
      if (isLate && ++slices % LATE_SLICES) continue;
      await (isLate ? turn() : this.#pace.reached(begun + done / MERGE_PACE));
      if (this.#closed) return;
    }
    const fences = builder.finish();
    const { count, bloom } = builder;
    const words = { ...(folded ? { folded } : {}), ...(titled ? { titled } : {}) };
    const row = {
      level: inputs.length > 1 ? level + 1 : level,
      from,
      to: inputs.at(-1)!.to,
      count,
      bloom,
      fences,
      ...words,
      mapped: true,
    };
    await this.#writeRun(id, pending, row, inputs);
    this.#leftOvers.push(...inputs.map((run) => run.id));
  }

  async #writeRun(id: number, blocks: [number, Buffer][], row: RunRow, replaced: readonly Run[]): Promise<void> {
    await this.#tables.writeRun(
      id,
      blocks,
      row,
      replaced.map((run) => run.id),
    );
    this.#take({ ...row, id, fences: fencesOf(row.fences) }, replaced);
  }

  /** Removes the blocks of replaced and of unfinished runs. */
  async #clear(): Promise<void> {
    for (;;) {
      const [id] = this.#leftOvers;
      if (id === undefined || this.#closed) return;
      if (!(await this.#tables.removeBlocks(id))) this.#leftOvers.shift();
    }
  }
}
