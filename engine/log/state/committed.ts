/**
 * Rows as they are on disk, for commands: those of keys are kept, since every attestation asks for its signer's, and to
 * read and unpack one takes 4 µs; and all of a table whose rows are counted at each change. Only the sequencer changes rows, and it
 * passes them on once they are on disk (`written`). The sequencer owns them, in the writer's thread.
 */

import { Recent } from "../../base/recent.js";
import type { Layer, TableChange } from "../../store/changeset.js";
import type { Key, KeyOf, RowOf, TableName } from "../../store/schema/schema.js";
import type { Store } from "../../store/store.js";
import { type StateRow, withChanges, within } from "./rows.js";

/** About 1 KB each. */
const KEPT_KEYS = 4096;
/** Tables kept as a whole: a new subscription is counted with all others. */
const KEPT_TABLES: readonly TableName[] = ["webhooks"];

/**
 * Gets the changes that a batch made to a table, when they are on disk; null after a failure, when the table may hold
 * anything. It must not throw, and be quick.
 */
export type RowObserver<T extends TableName> = (changes: readonly TableChange<T>[] | null) => void;

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
    return within(rows, start, end);
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
      if (changes.length) observer(changes as never);
    }
  }

  /** The disk may hold anything now. */
  clear(): void {
    this.#keys.clear();
    this.#tables.clear();
    for (const observer of this.#observers.values()) observer(null);
  }
}
