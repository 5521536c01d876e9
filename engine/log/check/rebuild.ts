/**
 * Rebuilds state from entries alone: the rows and terms that `apply` makes of them, in order. Memory holds only the
 * results since the last call of `take`. So a log that fits in memory can be replayed at once, and any other in steps.
 */
import { compareKeys } from "../../native/lmdb.js";
import { Layer } from "../../store/changeset.js";
import type { TermTable } from "../../store/postings/termtable.js";
import type { KeyOf, RowOf, TableName } from "../../store/schema/schema.js";
import type { Store } from "../../store/store.js";
import { derive, storedEntry } from "../apply/derive.js";
import type { EntryReader } from "../read/reader.js";
import { type Edge, EMPTY_EDGE } from "../read/seams.js";
import type { Projection } from "../state/projection.js";
import { LayeredState } from "../state/rows.js";
import type { RowSource } from "./differences.js";

const EMPTY_STORE: Pick<Store, "get" | "range"> = { get: () => undefined, range: () => [] };

/** Derived rows and terms of entries that are replayed one after the other. */
export class Replay implements RowSource {
  readonly #reader: EntryReader;
  readonly #projection: Projection;
  readonly #taken: Pick<Store, "get" | "range">;
  #layer = new Layer();
  #last: Edge = EMPTY_EDGE;

  /** @param taken receives the rows of every layer that is taken, before the next entry is replayed */
  constructor(reader: EntryReader, projection: Projection, taken: Pick<Store, "get" | "range"> = EMPTY_STORE) {
    this.#reader = reader;
    this.#projection = projection;
    this.#taken = taken;
  }

  /** Replays the entries [from, to). @throws errors that damaged entries cause */
  apply(from: number, to: number): void {
    const state = new LayeredState(this.#taken, null, [this.#layer]);
    for (let index = from; index < to; index++) {
      const entry = storedEntry(this.#reader, index);
      if (!entry) continue;
      derive(entry, this.#last, this.#projection, state, this.#layer.terms);
      this.#last = entry;
    }
  }

  /** The results since the last call; this object no longer holds them. */
  take(): Layer {
    const layer = this.#layer;
    this.#layer = new Layer();
    return layer;
  }

  /** Terms that have not been taken. */
  get terms(): TermTable {
    return this.#layer.terms;
  }

  /** Keys of the rows that have not been taken. */
  keys<T extends TableName>(table: T): Iterable<KeyOf<T>> {
    const made = [...this.#layer.changes(table)].filter(({ row }) => row !== undefined);
    return made.map(({ key }) => key as KeyOf<T>).sort(compareKeys);
  }

  get<T extends TableName>(table: T, key: KeyOf<T>): RowOf<T> | undefined {
    return this.#layer.change(table, key)?.row;
  }
}
