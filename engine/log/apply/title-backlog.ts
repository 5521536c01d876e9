/**
 * The words of titles of entries that an older version filed without them, or folded in another way. A writer files them in the
 * background, in runs of their own beside those of the other postings, and reads nothing when there is nothing to do: entries
 * that this version appends, imports or restores are filed with their words, like every other posting.
 *
 * Until this is done, entries are found by the words that the older version has filed.
 *
 * If we crash here: runs that are on disk count, and the next start goes on behind the last one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { CairnlogError } from "../../base/error.js";
import type { StoreReader } from "../../store/contract.js";
import { FLUSH_ENTRIES, Postings } from "../../store/postings/postings.js";
import { TermTable } from "../../store/postings/termtable.js";
import type { EntryReader } from "../read/reader.js";
import { addTitleTerms } from "../state/projection.js";
import { storedEntry } from "./derive.js";

/** Entries between two pauses: half a millisecond of work. */
const SLICE = 64;
/** Length of a pause, in which appends and requests have the thread: at most a third of it goes into this work. */
const PAUSE_MS = 1;

export class TitleBacklog {
  readonly #postings: Postings;
  /** Nothing but words of titles of earlier entries. */
  readonly #words: Postings;
  /** Words that an older version filed, folded in its way; null where it filed none. */
  readonly #earlier: Postings | null;
  readonly #entries: EntryReader;
  #filing: Promise<void> | null = null;
  #failure: unknown;
  #closed = false;

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

  /** Files what is missing, in the background. Only for the writer. A disk that is full or fails ends it until the next start. */
  file(): void {
    if (this.#filing || this.#closed || !this.missing) return;
    this.#filing = this.#file().catch((cause: unknown) => {
      this.#failure = cause;
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#filing;
    await this.#words.close();
  }

  async #file(): Promise<void> {
    while (this.missing) {
      const to = Math.min(this.end, this.#words.size + FLUSH_ENTRIES);
      const terms = new TermTable();
      for (let index = this.#words.size; index < to; index++) {
        addTitleTerms(storedEntry(this.#entries, index)!.event, terms);
        if (index % SLICE !== SLICE - 1) continue;
        await sleep(PAUSE_MS);
        if (this.#closed) return;
      }
      this.#words.add(to, terms);
      // A write that failed is thrown here. Merges run at their own pace.
      await this.#words.relieved(0);
      if (this.#words.isStopped) await this.#words.settle();
    }
    // Readers see only runs.
    await this.#words.fileAll();
  }
}
