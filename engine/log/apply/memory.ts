/**
 * A thread's memory of a log: the right edge of its trees, the keys that sign its heads, and the postings of the newest
 * entries that are not in a run on disk yet. In the writer's thread it is ahead of the disk while batches are on their way, and
 * there it also files the words of titles that an older version left out.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { closeAll } from "../../base/closing.js";
import { CairnlogError } from "../../base/error.js";
import type { StoreReader } from "../../store/contract.js";
import { FLUSH_ENTRIES, Postings } from "../../store/postings/postings.js";
import { TermTable } from "../../store/postings/termtable.js";
import { Operators } from "../operator/operators.js";
import { Frontier } from "../read/frontier.js";
import { EntryReader } from "../read/reader.js";
import { addTitleTerms, type Projection } from "../state/projection.js";
import { catchUp, fileMissing, storedEntry } from "./derive.js";

export class LogMemory {
  readonly frontier: Frontier;
  readonly postings: Postings;
  /** The words of titles that runs of an older version lack. */
  readonly titles: TitleBacklog;
  /** Reads what is stored, for what is made of it. */
  readonly entries: EntryReader;
  readonly #projection: Projection;
  readonly #store: StoreReader;
  readonly #known: Operators;
  readonly #isReader: boolean;
  /** Whose heads these are. */
  operators: Operators;

  /**
   * Call `restore` before any other method.
   * @param known an operator key of the log, or the chain of its keys as far as it is known
   * @param isReader another thread or process writes the log
   */
  constructor(store: StoreReader, projection: Projection, known: Operators, isReader = false) {
    this.#store = store;
    this.#known = known;
    this.#isReader = isReader;
    this.operators = known;
    this.entries = new EntryReader(store);
    this.#projection = projection;
    this.frontier = new Frontier(store);
    this.postings = new Postings(store.postings, isReader);
    this.titles = new TitleBacklog(this.postings, store, this.entries, isReader);
  }

  /** Files entries whose postings are missing on disk. Only for the writer, before `restore`, which is quick after it. */
  async fileMissing(): Promise<void> {
    this.frontier.restore();
    await fileMissing(this.postings, this.entries, this.frontier.size, this.#projection);
  }

  /** Reads the state from disk again; a writer goes on filing what is missing. @throws CairnlogError `wrong-operator` for a log of another operator */
  restore(): void {
    const meta = this.#store.get("meta", "log");
    this.operators = meta ? Operators.read(this.#store, meta, this.#known) : this.#known;
    this.frontier.restore();
    this.addMissing(this.frontier.size);
    if (!this.#isReader) this.titles.file();
  }

  /** Adds the postings of entries below `size` that are in no run and that nobody told, from the entries. */
  addMissing(size: number): void {
    catchUp(this.postings, this.entries, size, this.#projection);
  }

  /** Ends the work in the background; postings that would delay the next start are written. */
  async close(): Promise<void> {
    await closeAll(
      () => this.titles.close(),
      () => this.postings.close(),
    );
  }
}

// The words of titles of entries that an older version filed without them, or folded in another way. A writer files them in the
// background, in runs of their own beside those of the other postings, and reads nothing when there is nothing to do: entries
// that this version appends, imports or restores are filed with their words, like every other posting.
//
// Until this is done, entries are found by the words that the older version has filed.
//
// If we crash here: runs that are on disk count, and the next start goes on behind the last one.

/** Entries between two pauses: half a millisecond of work. */
const SLICE = 64;
/** Length of a pause, in which appends and requests have the thread: at most a third of it goes into this work. */
const PAUSE_MS = 1;
/** Milliseconds after which a full disk is tried again. */
const RETRY_MS = 1_000;

class TitleBacklog {
  readonly #postings: Postings;
  /** Nothing but words of titles of earlier entries. */
  readonly #words: Postings;
  /** Words that an older version filed, folded in its way; null where it filed none. */
  readonly #earlier: Postings | null;
  readonly #entries: EntryReader;
  #filing: Promise<void> | null = null;
  #failure: unknown;
  readonly #closing = new AbortController();

  /** @param postings those of all entries */
  constructor(
    postings: Postings,
    { words, titles }: Pick<StoreReader, "words" | "titles">,
    entries: EntryReader,
    isReader: boolean,
  ) {
    this.#postings = postings;
    this.#words = new Postings(words, isReader);
    this.#earlier = titles.runIds().length ? new Postings(titles, true) : null;
    this.#entries = entries;
  }

  /** Has `observer` called when there are other runs than before. It must not throw, and be quick. */
  observe(observer: () => void): void {
    this.#words.observer = { frozen() {}, runsChanged: observer };
  }

  /** Leaf index after the last entry of the backlog; 0 if there is none. */
  get end(): number {
    return this.#postings.untitledEnd;
  }

  /** Number of entries whose words are not filed yet. */
  get missing(): number {
    return Math.max(0, this.end - this.#words.size);
  }

  /**
   * The postings of all words of titles.
   * @throws CairnlogError `indexing` while an older version has not filed some that are missing; the error that stopped the filing
   */
  sources(): readonly Postings[] {
    if (!this.end) return [this.#postings];
    if (!this.missing) return [this.#words, this.#postings];
    if (this.#postings.earlierUntitledEnd <= Math.max(this.#words.size, this.#earlier?.size ?? 0))
      return [this.#words, ...(this.#earlier ? [this.#earlier] : []), this.#postings];
    if (this.#failure) throw this.#failure;
    throw new CairnlogError(
      "indexing",
      `The titles of older entries are being filed: ${this.#words.size} of ${this.end} are done.`,
      { retryAfter: 5 },
    );
  }

  /** Reads the runs that the writer has made since. Only for a reader. */
  takeRuns(): void {
    this.#words.takeRuns();
  }

  /**
   * Files what is missing, in the background. Only for the writer. It waits while the disk is full; any other failure ends it until
   * the next start.
   */
  file(): void {
    if (this.#filing || this.#closing.signal.aborted || !this.missing) return;
    this.#filing = this.#untilFiled();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#filing;
    await this.#words.close();
  }

  async #untilFiled(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted)
      try {
        return await this.#file();
      } catch (cause) {
        this.#failure = cause;
        if (!(cause instanceof CairnlogError && cause.code === "storage-full")) return;
        await sleep(RETRY_MS, undefined, { signal, ref: false }).catch(() => {});
      }
  }

  async #file(): Promise<void> {
    if (this.#failure) {
      // An addition, even of nothing, has them write again what the disk did not take.
      this.#words.add(this.#words.size, new TermTable());
      await this.#written();
      this.#failure = undefined;
    }
    while (this.missing) {
      const to = Math.min(this.end, this.#words.size + FLUSH_ENTRIES);
      const terms = new TermTable();
      for (let index = this.#words.size; index < to; index++) {
        addTitleTerms(storedEntry(this.#entries, index)!.event, terms);
        if (index % SLICE !== SLICE - 1) continue;
        await sleep(PAUSE_MS);
        if (this.#closing.signal.aborted) return;
      }
      this.#words.add(to, terms);
      await this.#written();
    }
    // Readers see only runs.
    await this.#words.fileAll();
  }

  /** Merges run at their own pace. @throws the error of a write that failed */
  async #written(): Promise<void> {
    await this.#words.relieved(0);
    if (this.#words.isStopped) await this.#words.settle();
  }
}
