/**
 * What a thread keeps in memory of a log: the right edge of its trees, and what the newest entries are found by as long as no
 * run of postings on disk holds it. In the writer's thread it runs ahead of the disk while batches are on their way.
 */
import type { StoreReader } from "../../store/contract.js";
import { Postings } from "../../store/postings/postings.js";
import { EntryReader } from "../read/reader.js";
import { Frontier } from "../tree/frontier.js";
import type { Projection } from "../write/projection.js";
import { catchUp } from "./derive.js";

export class LogMemory {
  readonly frontier: Frontier;
  readonly postings: Postings;
  readonly #entries: EntryReader;
  readonly #projection: Projection;

  /**
   * To be restored before anything else.
   * @param isReader another thread or process writes the log
   */
  constructor(store: StoreReader, projection: Projection, isReader = false) {
    this.#entries = new EntryReader(store);
    this.#projection = projection;
    this.frontier = new Frontier(store);
    this.postings = new Postings(store.postings, isReader);
  }

  /** Becomes what the disk says. */
  restore(): void {
    this.frontier.restore();
    catchUp(this.postings, this.#entries, this.frontier.size, this.#projection);
  }
}
