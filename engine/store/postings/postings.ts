/**
 * Postings: term → ascending leaf indexes. The newest few thousand entries' are in memory; older ones lie in sorted
 * runs, which are merged geometrically in the background, one merge a level at a time, each twice as fast as postings come
 * in: done well before the next is due, and an append costs the same wherever in a merge it falls. A log never deletes,
 * so no record is ever superseded.
 *
 * If we crash here: a run counts only once its row is in table `runs`, written in one transaction with the removal of
 * what it replaces. Blocks of a run without a row are removed after the next start, and the entries after the last run
 * are read again from their batches.
 */

import type { RunRow } from "../rows.js";
import { BLOOM_KINDS } from "../schema.js";
import { mayContain } from "./bloom.js";
import { mergeRuns } from "./merge.js";
import { Pace } from "./pace.js";
import { fencesOf, MAX_INDEX, positionOf, type Run, RunBuilder, RunReader } from "./runs.js";
import type { PostingTables } from "./tables.js";
import { TermTable } from "./termtable.js";

/** Entries kept in memory before they become a run. */
export const FLUSH_ENTRIES = 4096;
/** Neighbouring runs of one level that become one run of the next. */
export const MERGE_WIDTH = 4;
/** Postings that a merge passes on for each one that comes in. */
const MERGE_PACE = 2;
/** Terms of a flush between two breaths of the event loop: about 1 ms. */
const SLICE_TERMS = 4_096;
/** Blocks of a merge written in one transaction: half a megabyte. */
const MERGE_WRITE_BLOCKS = 32;

/** The ascending leaf indexes of one term; `at` and `seek` cost a search, not a scan. Valid until the next append. */
export interface PostingList {
  readonly length: number;
  at(rank: number): number;
  /** How many of them are below `index`. */
  seek(index: number): number;
  /** The next ones from `index` on, ascending: `count` of them, or as many as there are. Costs one search in all. */
  window(index: number, count: number): number[];
}

/** The part of a list that lies in one run, or in memory. */
interface Segment {
  readonly length: number;
  at(rank: number): number;
  seek(index: number): number;
  read(rank: number, count: number, into: number[]): void;
}

const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function countBelow(indexes: readonly number[], index: number): number {
  let low = 0;
  let high = indexes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (indexes[middle]! < index) low = middle + 1;
    else high = middle;
  }
  return low;
}

interface MemoryRun {
  readonly from: number;
  to: number;
  readonly terms: TermTable;
}

export class Postings {
  readonly #tables: PostingTables;
  readonly #reader: RunReader;
  readonly #isReader: boolean;
  /** Oldest first; their ranges of leaf indexes join without gap. */
  #runs: readonly Run[];
  #nextRunId: number;
  /** Full, and being written as a run. */
  #frozen: MemoryRun | null = null;
  #memory: MemoryRun;
  /** Empty: the memory of what was flushed last is used again. */
  #spare: TermTable | null = null;
  #flushing: Promise<void> | null = null;
  /** By level of what is merged. */
  readonly #merging = new Map<number, Promise<void>>();
  readonly #pace = new Pace();
  /** Ids whose blocks belong to no run. */
  #leftOvers: number[];
  #clearing: Promise<void> | null = null;
  #closed = false;
  #failure: unknown;

  /** @param isReader another process writes the log: runs are taken as they are found, and none is made */
  constructor(tables: PostingTables, isReader = false) {
    this.#tables = tables;
    this.#reader = new RunReader(tables);
    this.#isReader = isReader;
    this.#runs = this.#storedRuns();
    const live = new Set(this.#runs.map(({ id }) => id));
    // A run that a reader does not know may be one that the writer is just making.
    const filed = isReader ? [] : tables.filedIds();
    this.#leftOvers = filed.filter((id) => !live.has(id));
    this.#nextRunId = Math.max(0, ...filed, ...live) + 1;
    this.#memory = this.#afterRuns();
  }

  #storedRuns(): readonly Run[] {
    return this.#tables.runs().sort((a, b) => a.from - b.from);
  }

  #afterRuns(): MemoryRun {
    const from = this.#runs.at(-1)?.to ?? 0;
    return { from, to: from, terms: new TermTable() };
  }

  /** Takes the runs that the writer has made since. What was in memory and is in none of them must be added again. */
  reload(): void {
    const runs = this.#storedRuns();
    if (runs.map(({ id }) => id).join() === this.#runs.map(({ id }) => id).join()) return;
    this.#runs = runs;
    this.#memory = this.#afterRuns();
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

  /** Takes the postings of the entries [size, to), which are on disk by now. */
  add(to: number, terms: TermTable): void {
    // Writing failed before: entries come in again, so the disk may take a run again, too.
    this.#failure = undefined;
    this.#memory.terms.addAll(terms);
    this.#memory.to = to;
    this.#pace.feed(terms.count);
    this.#maintain();
  }

  /** The lowest leaf index of a term, or undefined. Where there is none, no run is read but by mistake of its filter. */
  first(term: string): number | undefined {
    const isFiltered = BLOOM_KINDS.has(term.charCodeAt(0));
    for (const run of this.#runs) {
      if (isFiltered && !mayContain(run.bloom, term)) continue;
      const { first, end } = this.#reader.span(run, term);
      if (first < end) return this.#reader.indexAt(run, first);
    }
    return this.#frozen?.terms.first(term) ?? this.#memory.terms.first(term);
  }

  /** All entries of a term. */
  list(term: string): PostingList {
    const segments: Segment[] = [];
    for (const run of this.#runs) {
      if (BLOOM_KINDS.has(term.charCodeAt(0)) && !mayContain(run.bloom, term)) continue;
      const { first, end } = this.#reader.span(run, term);
      const length = end - first;
      if (length)
        segments.push({
          length,
          at: (rank) => this.#reader.indexAt(run, first + rank),
          seek: (index) =>
            index <= run.from ? 0 : index >= run.to ? length : this.#reader.rank(run, positionOf(term, index)) - first,
          read: (rank, count, into) => this.#reader.readIndexes(run, first + rank, count, into),
        });
    }
    for (const memory of [this.#frozen, this.#memory]) {
      const indexes = memory?.terms.list(term) ?? [];
      if (indexes.length)
        segments.push({
          length: indexes.length,
          at: (rank) => indexes[rank]!,
          seek: (index) => countBelow(indexes, index),
          read: (rank, count, into) => {
            for (let i = 0; i < count; i++) into.push(indexes[rank + i]!);
          },
        });
    }
    return {
      length: segments.reduce((sum, segment) => sum + segment.length, 0),
      at(rank) {
        let rest = rank;
        for (const segment of segments) {
          if (rest < segment.length) return segment.at(rest);
          rest -= segment.length;
        }
        throw new RangeError(`rank ${rank} is past the end of the list`);
      },
      seek: (index) => segments.reduce((sum, segment) => sum + segment.seek(index), 0),
      window(index, count) {
        const found: number[] = [];
        for (const segment of segments) {
          const rank = segment.seek(index);
          segment.read(rank, Math.min(count - found.length, segment.length - rank), found);
          if (found.length === count) break;
        }
        return found;
      },
    };
  }

  /** The leaf index of every posting whose term is one from `low` to `high`: those in memory in no particular order. */
  *range(low: string, high: string): Iterable<number> {
    for (const run of this.#runs) {
      const end = this.#reader.rank(run, positionOf(high, MAX_INDEX));
      for (let rank = this.#reader.rank(run, positionOf(low, 0)); rank < end; rank++)
        yield this.#reader.indexAt(run, rank);
    }
    for (const memory of [this.#frozen, this.#memory]) if (memory) yield* memory.terms.range(low, high);
  }

  /** Waits, if more than `entries` have not become a run yet, until the disk has caught up with them. */
  async relieved(entries: number): Promise<void> {
    while (this.#flushing && this.#memory.to - this.#memory.from > entries) await this.#flushing;
  }

  /** Waits until nothing is left to be flushed, merged or cleared up. @throws what the background work failed with */
  async settle(): Promise<void> {
    for (let work = this.#work(); work.length; work = this.#work()) {
      this.#pace.release();
      await work[0];
    }
    if (this.#failure) throw this.#failure;
  }

  /** Stops the background work at its next breath; an unfinished merge is left to the next start. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#pace.release();
    await Promise.all(this.#work());
  }

  #work(): Promise<void>[] {
    return [this.#flushing, ...this.#merging.values(), this.#clearing].filter((work) => work !== null);
  }

  #maintain(): void {
    if (this.#closed || this.#failure || this.#isReader) return;
    if (!this.#flushing && (this.#frozen || this.#memory.to - this.#memory.from >= FLUSH_ENTRIES))
      this.#flushing = this.#inBackground(this.#flush(), () => {
        this.#flushing = null;
      });
    for (let group = this.#mergeable(); group; group = this.#mergeable()) {
      const { level } = group[0]!;
      this.#merging.set(
        level,
        this.#inBackground(this.#merge(group), () => this.#merging.delete(level)),
      );
    }
    if (!this.#clearing && this.#leftOvers.length)
      this.#clearing = this.#inBackground(this.#clear(), () => {
        this.#clearing = null;
      });
  }

  #inBackground(work: Promise<void>, done: () => void): Promise<void> {
    return work
      .catch((cause: unknown) => {
        this.#failure = cause;
        this.#adopt();
      })
      .finally(() => {
        done();
        this.#maintain();
      });
  }

  /** A write that failed may be on disk all the same: the runs there are those that count. */
  #adopt(): void {
    this.#runs = this.#storedRuns();
    if (this.#frozen && this.#frozen.to <= (this.#runs.at(-1)?.to ?? 0)) this.#frozen = null;
  }

  /** Takes a run that is on disk, where `#adopt` may have found it already, in place of those that it was made of. */
  #take(run: Run, replaced: readonly Run[]): void {
    const gone = new Set([run, ...replaced].map(({ id }) => id));
    this.#runs = [...this.#runs.filter(({ id }) => !gone.has(id)), run].sort((a, b) => a.from - b.from);
  }

  async #flush(): Promise<void> {
    const memory = this.#frozen ?? this.#memory;
    if (!this.#frozen) {
      this.#frozen = memory;
      this.#memory = { from: memory.to, to: memory.to, terms: this.#spare ?? new TermTable() };
      this.#spare = null;
    }
    const id = this.#nextRunId++;
    const blocks: [number, Buffer][] = [];
    const builder = new RunBuilder(memory.terms.filteredTerms, (block, records) => blocks.push([block, records]));
    for (const _ of memory.terms.writeTo(builder, SLICE_TERMS)) await breathe();
    const fences = builder.finish();
    const { count, bloom } = builder;
    await this.#writeRun(id, blocks, { level: 0, from: memory.from, to: memory.to, count, bloom, fences }, []);
    this.#frozen = null;
    memory.terms.clear();
    this.#spare = memory.terms;
  }

  /** The oldest row of neighbours that all have one level, no run of which is being merged, and are enough to merge. */
  #mergeable(): readonly Run[] | null {
    for (let i = 0; i + MERGE_WIDTH <= this.#runs.length; i++) {
      const group = this.#runs.slice(i, i + MERGE_WIDTH);
      const { level } = group[0]!;
      if (!this.#merging.has(level) && group.every((run) => run.level === level)) return group;
    }
    return null;
  }

  async #merge(inputs: readonly Run[]): Promise<void> {
    const id = this.#nextRunId++;
    const bloomTerms = Math.ceil(inputs.reduce((sum, run) => sum + run.bloom.length * 8, 0) / 10);
    let pending: [number, Buffer][] = [];
    const builder = new RunBuilder(bloomTerms, (block, records) => pending.push([block, records]));
    const begun = this.#pace.fed;
    for (const done of mergeRuns(this.#reader, inputs, builder)) {
      if (pending.length >= MERGE_WRITE_BLOCKS) {
        await this.#tables.writeBlocks(id, pending);
        pending = [];
      }
      await this.#pace.reached(begun + done / MERGE_PACE);
      if (this.#closed) return;
    }
    const fences = builder.finish();
    const { count, bloom } = builder;
    const [from, to] = [inputs[0]!.from, inputs.at(-1)!.to];
    await this.#writeRun(id, pending, { level: inputs[0]!.level + 1, from, to, count, bloom, fences }, inputs);
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
