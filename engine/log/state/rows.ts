/** Rows as commands see them: those on disk, under the layers of the batches that are on their way there. */

import { tell } from "../../base/lock.js";
import { Recent } from "../../base/recent.js";
import { compareKeys } from "../../native/lmdb.js";
import { type Layer, rowsBetween, type StateRow, type TableChange, withChanges } from "../../store/changeset.js";
import { failedRead } from "../../store/lmdb/health.js";
import type { Postings } from "../../store/postings/postings.js";
import type { DerivedTable, Key, KeyOf, PrivateTable, RowOf, TableName } from "../../store/schema/schema.js";
import type { Store } from "../../store/store.js";
import type { RowObserver } from "./executor.js";
import { type StateWriter, withheldKeys } from "./projection.js";

/** Behind every key that is hex. */
const AFTER_HEX = "g";
/** About 1 KB each. */
const KEPT_KEYS = 4096;
/** Tables kept as a whole: a new subscription is counted with all others, and nearly every new term is looked up in vain. */
const KEPT_TABLES: readonly TableName[] = ["webhooks", "withheldTerms"];

/**
 * Rows as they are on disk: those of keys are kept, since every attestation asks for its signer's, and to read and unpack one
 * takes 4 µs; and all of a table whose rows are counted at each change. Only the sequencer changes rows, and it passes them
 * on once they are on disk (`written`). The sequencer owns them, in the writer's thread.
 */
export class CommittedRows implements Pick<Store, "get" | "range"> {
  readonly #store: Pick<Store, "get" | "range">;
  readonly #keys = new Recent<string, RowOf<"keys">>(KEPT_KEYS);
  /** Ascending. An array is never changed: commands may still hold it. */
  readonly #tables = new Map<TableName, readonly StateRow<TableName>[]>();
  readonly #observers = new Map<TableName, RowObserver<never>>();

  constructor(store: Pick<Store, "get" | "range">) {
    this.#store = store;
  }

  get<T extends TableName>(table: T, key: KeyOf<T>): RowOf<T> | undefined {
    if (table !== "keys") return this.#store.get(table, key);
    const fingerprint = key as KeyOf<"keys">;
    const known = this.#keys.get(fingerprint);
    if (known) return known as RowOf<T>;
    const row = this.#store.get("keys", fingerprint);
    if (row) this.#keys.set(fingerprint, row);
    return row as RowOf<T> | undefined;
  }

  range<T extends TableName>(table: T, start: Key, end: Key): readonly StateRow<T>[] {
    if (!KEPT_TABLES.includes(table)) return [...this.#store.range(table, start, end)];
    let rows = this.#tables.get(table) as readonly StateRow<T>[] | undefined;
    if (!rows) {
      rows = [...this.#store.range(table)];
      this.#tables.set(table, rows);
    }
    return rowsBetween(rows, start, end);
  }

  /** Has `observer` called for every batch that changes rows of a table; it takes the place of an earlier one. */
  observe<T extends TableName>(table: T, observer: RowObserver<T>): void {
    this.#observers.set(table, observer as RowObserver<never>);
  }

  /** The changes of this layer are on disk now. Until then it stands before the old rows. */
  written(layer: Layer): void {
    for (const { key } of layer.changes("keys")) this.#keys.delete(key);
    for (const [table, rows] of this.#tables) this.#tables.set(table, withChanges(rows, [...layer.changes(table)]));
    for (const [table, observer] of this.#observers) {
      const changes = [...layer.changes(table)];
      if (changes.length) tell(observer, changes as never);
    }
  }

  /** The disk may hold anything now. */
  clear(): void {
    this.#keys.clear();
    this.#tables.clear();
    for (const observer of this.#observers.values()) tell(observer, null);
  }
}

/**
 * The rows on disk under the layers of every batch that is on its way there, under the layer of the batch being formed, under
 * that of the command itself. Reads through `layers` (oldest first) to `store`; writes go to the newest layer.
 */
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
    // Few logs withhold anything, and nearly every append comes here: its key is only spelled where there are others.
    const rows = this.range("withheldTerms", "", AFTER_HEX);
    const [key] = rows.length ? withheldKeys(term) : [];
    return key === undefined ? undefined : rowsBetween(rows, key, `${key}0`)[0]?.row.leaf_index;
  }
}

const rowsOf = <T>(rows: Iterable<T>): readonly T[] => (Array.isArray(rows) ? rows : [...rows]);

/** A command that cannot read its state is told so in the log's own words, not in those of the disk. */
function reading<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw failedRead(cause);
  }
}
