/**
 * The change set: everything that one batch changes, as one value. Nothing else is ever written to a log.
 *
 * While a batch is on its way to disk, its rows are in a `Layer`. Commands read through the layers of all batches in
 * flight, newest first, and so see all changes of earlier commands, committed or not.
 */

import { leastWhere } from "../base/search.js";
import { compareKeys } from "../native/lmdb.js";
import { TermTable } from "./postings/termtable.js";
import type { JournalPosition } from "./schema/position.js";
import {
  type DerivedTable,
  isRecorded,
  type Key,
  type KeyOf,
  type RecordedTable,
  type RowOf,
  type TableName,
} from "./schema/schema.js";

export interface RowChange<T extends TableName = TableName> {
  readonly table: T;
  readonly key: Key;
  /** `undefined` deletes the row. */
  readonly row: unknown;
}

/** Orders changes by table, and within a table as LMDB orders its keys. */
export const byKey = (a: RowChange, b: RowChange): number =>
  a.table === b.table ? compareKeys(a.key, b.key) : a.table < b.table ? -1 : 1;

/** A change to a row of one table. */
export interface TableChange<T extends TableName> {
  readonly table: T;
  readonly key: KeyOf<T>;
  /** `undefined` deletes the row. */
  readonly row: RowOf<T> | undefined;
}

export interface TileChange {
  readonly treeVersion: 1 | 2;
  readonly level: number;
  readonly index: number;
  /** `null` removes the tile. */
  readonly hashes: Uint8Array | null;
}

/** Packed entries and heads, and the leaf index of the first of them. */
export interface PlacedBatch {
  readonly firstIndex: number;
  readonly batch: Buffer;
}

export interface ChangeSet {
  /** Sequence that the environment's position must have. If it has another one, nothing is written. */
  readonly after: number;
  /** The position after the commit; null if the changes are repairs of derived data and not a record. */
  readonly position: JournalPosition | null;
  /** In order; empty when only rows change. */
  readonly batches: readonly PlacedBatch[];
  readonly rows: readonly RowChange[];
  readonly tiles: readonly TileChange[];
}

const rowId = (key: Key): string => (typeof key === "string" ? key : JSON.stringify(key));

/** A row of a layer before it was changed; `previous` is undefined if the layer had not touched it. */
interface Undo {
  readonly rows: Map<string, RowChange>;
  readonly id: string;
  readonly previous: RowChange | undefined;
}

/**
 * Uncommitted rows and postings of a batch. From `begin` to `keep` or `undo` it records the previous values, so that a
 * command that refuses leaves no trace, and a command that succeeds costs no copy.
 */
export class Layer {
  readonly #tables = new Map<TableName, Map<string, RowChange>>();
  readonly #undoRows: Undo[] = [];
  #noting = false;
  #postingsBefore = 0;
  /** The terms of the batch's entries (`term.ts`). */
  readonly terms: TermTable;

  /** @param terms an empty table, whose memory is reused */
  constructor(terms = new TermTable()) {
    this.terms = terms;
  }

  begin(): void {
    this.#noting = true;
    this.#postingsBefore = this.terms.count;
  }

  keep(): void {
    this.#noting = false;
    this.#undoRows.length = 0;
  }

  /** The rows that were changed since `begin`, each once, as they are now. */
  changedRows(): Iterable<RowChange> {
    const changed = new Set<RowChange>();
    for (const { rows, id } of this.#undoRows) changed.add(rows.get(id)!);
    return changed;
  }

  /** Undoes all changes since `begin`. */
  undo(): void {
    for (const { rows, id, previous } of this.#undoRows.reverse())
      if (previous) rows.set(id, previous);
      else rows.delete(id);
    this.terms.truncate(this.#postingsBefore);
    this.keep();
  }

  /** The change to this row, or undefined if this layer does not touch it. */
  change<T extends TableName>(table: T, key: KeyOf<T>): { readonly row: RowOf<T> | undefined } | undefined {
    return this.#tables.get(table)?.get(rowId(key)) as { row: RowOf<T> | undefined } | undefined;
  }

  put<T extends TableName>(table: T, key: KeyOf<T>, row: RowOf<T> | undefined): void {
    let rows = this.#tables.get(table);
    if (!rows) {
      rows = new Map();
      this.#tables.set(table, rows);
    }
    const id = rowId(key);
    if (this.#noting) this.#undoRows.push({ rows, id, previous: rows.get(id) });
    rows.set(id, { table, key, row });
  }

  /** Changes of one table, in no particular order. */
  changes<T extends TableName>(table: T): Iterable<TableChange<T>> {
    return (this.#tables.get(table)?.values() as Iterable<TableChange<T>> | undefined) ?? [];
  }

  /** Every change: first the changes that a record carries, then those derived from its entries. */
  split(): { readonly recorded: RowChange<RecordedTable>[]; readonly derived: RowChange<DerivedTable>[] } {
    const recorded: RowChange<RecordedTable>[] = [];
    const derived: RowChange<DerivedTable>[] = [];
    for (const [table, changes] of this.#tables) {
      const rows: RowChange[] = isRecorded(table) ? recorded : derived;
      for (const change of changes.values()) rows.push(change);
    }
    return { recorded, derived };
  }
}

/** A row in a list that is in the order of its keys. */
export interface StateRow<T extends TableName> {
  readonly key: KeyOf<T>;
  readonly row: RowOf<T>;
}

/** The rows with `start` <= key < `end`; `rows` itself where these are all. */
export function within<T extends TableName>(
  rows: readonly StateRow<T>[],
  start: Key,
  end: Key,
): readonly StateRow<T>[] {
  const [from, to] = [placeOf(rows, start), placeOf(rows, end)];
  return from === 0 && to === rows.length ? rows : rows.slice(from, to);
}

/** The rows after `changes`, of which a later one counts more; `rows` itself where there are none. */
export function withChanges<T extends TableName>(
  rows: readonly StateRow<T>[],
  changes: readonly Pick<TableChange<T>, "key" | "row">[],
): readonly StateRow<T>[] {
  if (!changes.length) return rows;
  const changed = [...rows];
  for (const { key, row } of changes) {
    const place = placeOf(changed, key);
    const isThere = place < changed.length && compareKeys(changed[place]!.key, key) === 0;
    if (row === undefined) changed.splice(place, isThere ? 1 : 0);
    else if (isThere) changed[place] = { key, row };
    else changed.splice(place, 0, { key, row });
  }
  return changed;
}

/** How many rows have a lower key. */
const placeOf = (rows: readonly { readonly key: Key }[], key: Key): number =>
  leastWhere(0, rows.length, (place) => compareKeys(rows[place]!.key, key) >= 0);
