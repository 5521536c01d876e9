/**
 * State from entries alone: the rows and terms that `apply` makes of them, in order. Memory holds what was made since it
 * was last taken away, so a log that fits in memory is replayed at once, and any other in steps.
 */
import { compareKeys } from "lmdb";
import { Layer } from "../../store/changeset.js";
import type { TermTable } from "../../store/postings/termtable.js";
import type { KeyOf, RowOf, TableName } from "../../store/schema.js";
import type { Store } from "../../store/store.js";
import { derive, storedEntry } from "../apply/derive.js";
import type { EntryReader } from "../read/reader.js";
import { type Edge, EMPTY_EDGE } from "../read/seams.js";
import { LayeredState } from "../write/layered.js";
import type { Projection } from "../write/projection.js";
import type { RowSource } from "./differences.js";

const EMPTY_STORE: Pick<Store, "get" | "range"> = { get: () => undefined, range: () => [] };

/** Derived rows and terms of entries, as they are replayed one after the other. */
export class Replay implements RowSource {
  readonly #reader: EntryReader;
  readonly #projection: Projection;
  readonly #taken: Pick<Store, "get" | "range">;
  #layer = new Layer();
  #last: Edge = EMPTY_EDGE;

  /** @param taken where the rows of every layer that is taken are put before the next entry is replayed */
  constructor(reader: EntryReader, projection: Projection, taken: Pick<Store, "get" | "range"> = EMPTY_STORE) {
    this.#reader = reader;
    this.#projection = projection;
    this.#taken = taken;
  }

  /** Replays the entries [from, to). @throws what damaged entries make of it */
  apply(from: number, to: number): void {
    const state = new LayeredState(this.#taken, null, [this.#layer]);
    for (let index = from; index < to; index++) {
      const entry = storedEntry(this.#reader, index);
      if (!entry) continue;
      derive(entry, this.#last, this.#projection, state, this.#layer.terms);
      this.#last = entry;
    }
  }

  /** What was made since the last call, no longer held here. */
  take(): Layer {
    const layer = this.#layer;
    this.#layer = new Layer();
    return layer;
  }

  /** Terms that were made and not taken. */
  get terms(): TermTable {
    return this.#layer.terms;
  }

  /** Keys of the rows that were made and not taken. */
  keys<T extends TableName>(table: T): Iterable<KeyOf<T>> {
    const made = [...this.#layer.changes(table)].filter(({ row }) => row !== undefined);
    return made.map(({ key }) => key as KeyOf<T>).sort(compareKeys);
  }

  get<T extends TableName>(table: T, key: KeyOf<T>): RowOf<T> | undefined {
    return this.#layer.change(table, key)?.row;
  }
}
