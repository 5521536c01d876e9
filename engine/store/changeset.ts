/**
 * The change set: everything that one batch changes, as one value. Nothing else is ever written to a log.
 *
 * While a batch is on its way to disk, its rows are in a `Layer`. Commands read through the layers of all batches in
 * flight, newest first, and so see all changes of earlier commands, committed or not.
 */

import { CairnlogError } from "../base/error.js";
import { leastWhere } from "../base/search.js";
import { compareKeys } from "../native/lmdb.js";
import { TermTable } from "./postings/termtable.js";
import {
  type DerivedTable,
  HASH,
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
export function rowsBetween<T extends TableName>(
  rows: readonly StateRow<T>[],
  start: Key,
  end: Key,
): readonly StateRow<T>[] {
  const [from, to] = [placeOf(rows, start), placeOf(rows, end)];
  return from === 0 && to === rows.length ? rows : rows.slice(from, to);
}

/** The rows as `changes` leave them; of two changes of a row the later one holds. Without changes, `rows` itself. */
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

// The journal's position: the newest record that is applied to an environment. Every commit changes the row with the
// position, under the condition that the row still has the value that the writer knows. So no two writers can commit
// from the same state.
//
// Layout of the row: u48 epoch · 32-byte hash. The row's LMDB version (8 bytes before it) is the sequence.

export interface JournalPosition {
  /** Number of the newest record; the first record is 1. 0 before the first record. */
  readonly sequence: number;
  /** Counts the writers that have taken the lead of a journal; 0 for a journal that has only one. */
  readonly epoch: number;
  /** Hash of the newest record; zeros as long as no journal has needed records as bytes. */
  readonly hash: Uint8Array;
}

export const NO_HASH: Uint8Array = new Uint8Array(HASH);
export const ORIGIN: JournalPosition = { sequence: 0, epoch: 0, hash: NO_HASH };

/** Whether a log that has records is of no journal that keeps them as bytes. */
export const isOutside = ({ sequence, hash }: JournalPosition): boolean =>
  sequence > 0 && Buffer.compare(hash, NO_HASH) === 0;

/** Whether a log is that of a node: it stands at a record of a journal that keeps them as bytes. */
export const isInJournal = (position: JournalPosition): boolean => position.sequence > 0 && !isOutside(position);

const EPOCH_BYTES = 6;

/** The bytes of the row, without its version. */
export function packPosition({ epoch, hash }: JournalPosition): Buffer {
  const row = Buffer.alloc(EPOCH_BYTES + HASH);
  row.writeUIntBE(epoch, 0, EPOCH_BYTES);
  row.set(hash, EPOCH_BYTES);
  return row;
}

/** Inverse of `packPosition`. @throws CairnlogError `corrupt-log` */
export function unpackPosition(sequence: number, row: Buffer): JournalPosition {
  if (row.length !== EPOCH_BYTES + HASH || !Number.isSafeInteger(sequence) || sequence < 1)
    throw new CairnlogError(
      "corrupt-log",
      "The position of the journal cannot be read: the data directory is damaged.",
    );
  return { sequence, epoch: row.readUIntBE(0, EPOCH_BYTES), hash: Buffer.from(row.subarray(EPOCH_BYTES)) };
}
