/**
 * Compares runs of postings with the entries. It looks up each posting that the entries make, and counts the postings
 * of each run. If all are found and the numbers are equal, the run holds exactly these postings, in the right order.
 */

import type { PostingTables } from "../../store/postings/contract.js";
import { BLOCK_RECORDS, MapBuilder, mayContain, probeOf, RECORD_BYTES } from "../../store/postings/run-format.js";
import { blocksOf, fencesOf, positionOf, RunReader, type StoredRun } from "../../store/postings/runs.js";
import type { TermTable } from "../../store/postings/termtable.js";
import { isFiltered, POSTING } from "../../store/schema/schema.js";
import { beginningWith } from "../read/candidates.js";

const KIND_NAMES = new Map<number, string>(Object.entries(POSTING).map(([name, kind]) => [kind, name]));

interface CheckedRun {
  readonly run: StoredRun;
  /** Whether all its blocks exist. */
  readonly isWhole: boolean;
  /** Number of postings that the entries make in its range. */
  expected: number;
}

export class RunCheck {
  readonly #reader: RunReader;
  readonly #what: "postings" | "words";
  readonly #report: (sentence: string) => void;
  /** Ascending, without gaps or overlaps. */
  #runs: CheckedRun[] = [];

  /**
   * @param what the runs of all postings, or those that hold only words of titles
   * @param report called with a sentence for each difference
   */
  constructor(tables: PostingTables, what: "postings" | "words", size: number, report: (sentence: string) => void) {
    this.#reader = new RunReader(tables);
    this.#what = what;
    this.#report = report;
    let end = 0;
    for (const run of readRuns(tables, what, report)) {
      if (run.from !== end)
        report(`run ${run.id} of ${what} begins at leaf ${run.from}, where the one before ends at ${end}.`);
      else if (run.to > size || run.to <= run.from)
        report(`run ${run.id} of ${what} covers leaves ${run.from} to ${run.to}, and the log has ${size}.`);
      else this.#runs.push({ run, isWhole: this.#hasBlocks(tables, run), expected: 0 });
      end = Math.max(end, run.to);
    }
  }

  #hasBlocks(tables: PostingTables, run: StoredRun): boolean {
    const { id, count, fences } = run;
    const firsts: Buffer[] = [];
    const maps = new MapBuilder((number, map) => {
      if (!tables.block(id, number)?.equals(map))
        this.#report(`a bitmap of run ${id} of ${this.#what} does not say what its blocks do.`);
    });
    let isWhole = true;
    for (let block = 0; block < blocksOf(run); block++) {
      const bytes = Math.min(BLOCK_RECORDS, count - block * BLOCK_RECORDS) * RECORD_BYTES;
      const records = tables.block(id, block);
      if (records?.length === bytes) {
        firsts.push(Buffer.from(records.subarray(0, RECORD_BYTES)));
        if (isWhole && run.mapped) maps.add(block, Buffer.from(records));
        continue;
      }
      isWhole = false;
      this.#report(
        records === undefined
          ? `block ${block} of run ${id} of ${this.#what} is missing on disk.`
          : `block ${block} of run ${id} of ${this.#what} has ${records.length} bytes instead of ${bytes}.`,
      );
    }
    if (!isWhole) return false;
    maps.finish();
    const expected = fencesOf(Buffer.concat(firsts));
    if (!Buffer.from(expected.buffer).equals(Buffer.from(fences.buffer)))
      this.#report(`the fences of run ${id} of ${this.#what} are not the first records of its blocks.`);
    return fences.length === expected.length;
  }

  /** Looks up the postings of the next entries. */
  check(terms: TermTable): void {
    for (const [term, indexes] of terms) {
      if (this.#what === "words" && term.charCodeAt(0) !== POSTING.titleWord) continue;
      for (const index of indexes) this.#find(term, index);
    }
  }

  #find(term: string, index: number): void {
    const checked = this.#runs.find(({ run }) => index >= run.from && index < run.to);
    if (!checked?.isWhole) return;
    const { run } = checked;
    const kind = term.charCodeAt(0);
    const rank = this.#reader.rank(run, positionOf(term, index));
    const isThere =
      rank < run.count && this.#reader.indexAt(run, rank) === index && this.#reader.termAt(run, rank) === term;
    // An older version filed without the words of titles, and merged runs that had them with runs that had not.
    if (!isThere && kind === POSTING.titleWord && !run.folded) return;
    checked.expected++;
    const what = `the posting of entry ${index + 1} of the kind ${KIND_NAMES.get(kind) ?? kind}`;
    if (!isThere) this.#report(`run ${run.id} of ${this.#what} lacks ${what}.`);
    else if (isFiltered(kind) && !mayContain(run.bloom, probeOf(term)))
      this.#report(`the Bloom filter of run ${run.id} denies ${what}.`);
  }

  /** Call this after all entries. */
  finish(): void {
    for (const { run, isWhole, expected } of this.#runs)
      if (isWhole && run.count - this.#earlierWords(run) !== expected)
        this.#report(`run ${run.id} of ${this.#what} holds ${run.count}, but its entries make ${expected}.`);
  }

  /** Words of titles that nobody looks up any more, because this version folds them in another way. */
  #earlierWords(run: StoredRun): number {
    const { low, high } = beginningWith(POSTING.earlierTitleWord, "");
    const { first, end } = this.#reader.span(run, low, high);
    return end - first;
  }
}

function readRuns(tables: PostingTables, what: string, report: (sentence: string) => void): StoredRun[] {
  const runs: StoredRun[] = [];
  for (const id of tables.runIds())
    try {
      runs.push(tables.run(id));
    } catch {
      report(`the row of run ${id} of ${what} cannot be read.`);
    }
  return runs.sort((a, b) => a.from - b.from);
}
