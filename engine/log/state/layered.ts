/**
 * State as commands see it: the rows on disk under the layers of every batch that is on its way there, under the layer
 * of the batch being formed, under that of the command itself.
 */
import { compareKeys } from "../../native/lmdb.js";
import type { Layer, TableChange } from "../../store/changeset.js";
import { unreadable } from "../../store/lmdb/health.js";
import type { Postings } from "../../store/postings/postings.js";
import type { DerivedTable, Key, KeyOf, PrivateTable, RowOf, TableName } from "../../store/schema/schema.js";
import type { Store } from "../../store/store.js";
import type { StateWriter } from "./projection.js";
import { type StateRow, withChanges } from "./rows.js";

/** Reads through `layers` (oldest first) to `store`; writes go to the newest layer. */
export class LayeredState implements StateWriter<DerivedTable | PrivateTable> {
  readonly #store: Pick<Store, "get" | "range">;
  readonly #postings: Pick<Postings, "first"> | null;
  readonly #layers: readonly Layer[];

  constructor(store: Pick<Store, "get" | "range">, postings: Pick<Postings, "first"> | null, layers: readonly Layer[]) {
    this.#store = store;
    this.#postings = postings;
    this.#layers = layers;
  }

  get<T extends TableName>(table: T, key: KeyOf<T>): RowOf<T> | undefined {
    for (let i = this.#layers.length - 1; i >= 0; i--) {
      const change = this.#layers[i]!.change(table, key);
      if (change) return change.row;
    }
    return reading(() => this.#store.get(table, key));
  }

  range<T extends TableName>(table: T, start: Key, end: Key): readonly StateRow<T>[] {
    const rows = reading(() => rowsOf(this.#store.range(table, start, end)));
    const changes: TableChange<T>[] = [];
    for (const layer of this.#layers)
      for (const change of layer.changes(table))
        if (compareKeys(change.key, start) >= 0 && compareKeys(change.key, end) < 0) changes.push(change);
    return withChanges(rows, changes);
  }

  put<T extends DerivedTable | PrivateTable>(table: T, key: KeyOf<T>, row: RowOf<T> | undefined): void {
    this.#layers[this.#layers.length - 1]!.put(table, key, row);
  }

  first(term: string): number | undefined {
    const committed = this.#postings?.first(term);
    if (committed !== undefined) return committed;
    for (const layer of this.#layers) {
      const index = layer.terms.first(term);
      if (index !== undefined) return index;
    }
    return undefined;
  }
}

const rowsOf = <T>(rows: Iterable<T>): readonly T[] => (Array.isArray(rows) ? rows : [...rows]);

/** A command that cannot read its state is told so in the log's own words, not in those of the disk. */
function reading<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw unreadable(cause);
  }
}
