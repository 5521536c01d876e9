/**
 * A thread's memory of a log: the right edge of its trees, and the postings of the newest entries that are not in a run
 * on disk yet. In the writer's thread it is ahead of the disk while batches are on their way.
 */
import type { StoreReader } from "../../store/contract.js";
import { Postings } from "../../store/postings/postings.js";
import { EntryReader } from "../read/reader.js";
import { Frontier } from "../tree/frontier.js";
import type { Projection } from "../write/projection.js";
import { catchUp, fileMissing } from "./derive.js";

export class LogMemory {
  readonly frontier: Frontier;
  readonly postings: Postings;
  readonly #entries: EntryReader;
  readonly #projection: Projection;

  /**
   * Call `restore` before any other method.
   * @param isReader another thread or process writes the log
   */
  constructor(store: StoreReader, projection: Projection, isReader = false) {
    this.#entries = new EntryReader(store);
    this.#projection = projection;
    this.frontier = new Frontier(store);
    this.postings = new Postings(store.postings, isReader);
  }

  /** Files entries whose postings are missing on disk. Only for the writer, before `restore`, which is quick after it. */
  async fileMissing(): Promise<void> {
    this.frontier.restore();
    await fileMissing(this.postings, this.#entries, this.frontier.size, this.#projection);
  }

  /** Reads the state from disk again. */
  restore(): void {
    this.frontier.restore();
    catchUp(this.postings, this.#entries, this.frontier.size, this.#projection);
  }
}
