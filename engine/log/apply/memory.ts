/**
 * A thread's memory of a log: the right edge of its trees, the keys that sign its heads, and the postings of the newest
 * entries that are not in a run on disk yet. In the writer's thread it is ahead of the disk while batches are on their way.
 */
import type { StoreReader } from "../../store/contract.js";
import { Postings } from "../../store/postings/postings.js";
import { Operators } from "../operator/operators.js";
import { Frontier } from "../read/frontier.js";
import { EntryReader } from "../read/reader.js";
import type { Projection } from "../state/projection.js";
import { catchUp, fileMissing } from "./derive.js";
import { TitleBacklog } from "./title-backlog.js";

export class LogMemory {
  readonly frontier: Frontier;
  readonly postings: Postings;
  /** The words of titles that runs of an older version lack. */
  readonly titles: TitleBacklog;
  readonly #entries: EntryReader;
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
    this.#entries = new EntryReader(store);
    this.#projection = projection;
    this.frontier = new Frontier(store);
    this.postings = new Postings(store.postings, isReader);
    this.titles = new TitleBacklog(this.postings, store, this.#entries, isReader);
  }

  /** Files entries whose postings are missing on disk. Only for the writer, before `restore`, which is quick after it. */
  async fileMissing(): Promise<void> {
    this.frontier.restore();
    await fileMissing(this.postings, this.#entries, this.frontier.size, this.#projection);
  }

  /** Reads the state from disk again; a writer goes on filing what is missing. @throws CairnlogError `wrong-operator` for a log of another operator */
  restore(): void {
    const meta = this.#store.get("meta", "log");
    this.operators = meta ? Operators.read(this.#store, meta, this.#known) : this.#known;
    this.frontier.restore();
    catchUp(this.postings, this.#entries, this.frontier.size, this.#projection);
    if (!this.#isReader) this.titles.file();
  }

  /** Ends the work in the background; postings that would delay the next start are written. */
  async close(): Promise<void> {
    await this.titles.close();
    await this.postings.close();
  }
}
