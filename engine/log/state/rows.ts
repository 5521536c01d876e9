/** Lists of rows in the order of their keys. */

import { leastWhere } from "../../base/search.js";
import { compareKeys } from "../../native/lmdb.js";
import type { TableChange } from "../../store/changeset.js";
import type { Key, KeyOf, RowOf, TableName } from "../../store/schema/schema.js";

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
