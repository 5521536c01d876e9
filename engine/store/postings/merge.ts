/** Merges several sorted runs of neighbouring leaf indexes into one. */

import { turn } from "../../base/turns.js";
import { BLOCK_RECORDS, newBlock, RECORD_BYTES, type RecordBlock } from "./run-format.js";
import type { Run, RunBuilder, RunReader } from "./runs.js";

/** Records merged before the event loop gets a turn: about 1 ms of work. */
const SLICE_RECORDS = 4_096;

/**
 * Adds all records of `inputs`, oldest run first, to `builder` in sorted order. Yields after every slice, with the
 * number of records done.
 */
export function* mergeRuns(reader: RunReader, inputs: readonly Run[], builder: RunBuilder): Generator<number> {
  const cursors = inputs.map((run) => new MergeCursor(reader, run));
  while (cursors.length) {
    mergeSlice(cursors, builder);
    yield builder.count;
  }
}

/**
 * Merges the next records, and removes cursors that have none left. As a function of its own it is compiled once; inside the
 * generator, V8 compiled it anew for almost every merge: 16 times in the first 72,000 entries.
 */
function mergeSlice(cursors: MergeCursor[], builder: RunBuilder): void {
  for (let done = 0; done < SLICE_RECORDS && cursors.length; done++) {
    let at = 0;
    // For equal terms the record of the older run is first: all its entries are older.
    for (let i = 1; i < cursors.length; i++) if (cursors[i]!.isBefore(cursors[at]!)) at = i;
    const least = cursors[at]!;
    builder.copy(least.block, least.position);
    if (!least.next()) cursors.splice(at, 1);
  }
}

/**
 * Iterates over the records of one run, with a copy of one block at a time. It compares terms as three numbers, which
 * takes 15 ns; comparing ranges of bytes takes 150 ns. Each record is compared three times on each level of merging.
 */
class MergeCursor {
  readonly #reader: RunReader;
  readonly #run: Run;
  readonly block: RecordBlock = newBlock();
  #rank = 0;
  position = 0;
  /** Bytes 0–5 of the term. */
  #head = 0;

  constructor(reader: RunReader, run: Run) {
    this.#reader = reader;
    this.#run = run;
    reader.copyBlock(run, 0, this.block);
    this.#head = this.#part(0);
  }

  /** Moves to the next record; false if there is none. */
  next(): boolean {
    this.#rank++;
    this.position++;
    if (this.#rank === this.#run.count) return false;
    if (this.position === BLOCK_RECORDS) {
      this.#reader.copyBlock(this.#run, this.#rank / BLOCK_RECORDS, this.block);
      this.position = 0;
    }
    this.#head = this.#part(0);
    return true;
  }

  /** Whether this record's term sorts before the other's. */
  isBefore(other: MergeCursor): boolean {
    if (this.#head !== other.#head) return this.#head < other.#head;
    for (const at of [6, 11]) {
      const part = this.#part(at);
      const otherPart = other.#part(at);
      if (part !== otherPart) return part < otherPart;
    }
    return false;
  }

  /** Six bytes of the term as a number. The parts 0–5, 6–11 and 11–16 cover the whole term. */
  #part(from: number): number {
    const { view } = this.block;
    const at = this.position * RECORD_BYTES + from;
    return view.getUint32(at) * 65_536 + view.getUint16(at + 4);
  }
}

// Controls the speed of background work. While postings come in, the work proceeds at their pace, so that an append
// costs the same at every point of a merge. While none come in, it runs at full speed.

/** If nothing has come in for this time, background work at full speed delays nobody. */
const IDLE_MS = 50;

interface Waiting {
  readonly mark: number;
  readonly resolve: () => void;
}

export class MergePace {
  #fed = 0;
  #isFree = false;
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** The number of postings that have come in so far. */
  get fed(): number {
    return this.#fed;
  }

  feed(amount: number): void {
    this.#fed += amount;
    this.#isFree = false;
    if (!this.#waiting.length) return;
    this.#timer?.refresh();
    this.#wake((mark) => mark <= this.#fed);
  }

  /** Resolves when `fed` is at `mark`, or when nothing comes in; always after a turn of the event loop. */
  reached(mark: number): Promise<void> {
    if (this.#isFree || mark <= this.#fed) return turn();
    this.#timer ??= setTimeout(() => this.release(), IDLE_MS).unref();
    return new Promise((resolve) => this.#waiting.push({ mark, resolve }));
  }

  /** Lets all work run at full speed until more comes in. */
  release(): void {
    this.#isFree = true;
    this.#wake(() => true);
  }

  #wake(isDue: (mark: number) => boolean): void {
    const due = this.#waiting.filter(({ mark }) => isDue(mark));
    if (!due.length) return;
    this.#waiting = this.#waiting.filter(({ mark }) => !isDue(mark));
    if (!this.#waiting.length) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
    for (const { resolve } of due) void turn().then(resolve);
  }
}
