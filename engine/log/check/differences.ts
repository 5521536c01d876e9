/**
 * Compares the rows, tiles and postings of a log with those that the entries make. Rows and tiles are walked side by side in
 * key order.
 */
import { compareKeys } from "../../native/lmdb.js";
import type { Postings } from "../../store/postings/postings.js";
import type { TermTable } from "../../store/postings/termtable.js";
import { DERIVED_TABLES, type DerivedTable, type Key, type KeyOf } from "../../store/schema/schema.js";
import type { Store, TileKey } from "../../store/store.js";

/** Rows in key order. Reading a row may throw if its bytes are damaged. */
export type RowSource = Pick<Store, "get" | "keys">;

export interface Difference<K> {
  readonly key: K;
  /**
   * `missing`: the entries make it, but it is not on disk; `surplus`: it is on disk, but the entries do not make it.
   */
  readonly kind: "missing" | "surplus" | "altered" | "unreadable";
}

/** The differences of two ascending walks; `compare` is called for keys that both have. */
function* walk<K extends Key>(
  stored: Iterable<K>,
  expected: Iterable<K>,
  compare: (key: K) => "same" | "altered" | "unreadable",
): Iterable<Difference<K>> {
  const wanted = expected[Symbol.iterator]();
  let next = wanted.next();
  for (const key of stored) {
    while (!next.done && compareKeys(next.value, key) < 0) {
      yield { key: next.value, kind: "missing" };
      next = wanted.next();
    }
    if (next.done || compareKeys(next.value, key) !== 0) {
      yield { key, kind: "surplus" };
      continue;
    }
    const kind = compare(key);
    if (kind !== "same") yield { key, kind };
    next = wanted.next();
  }
  for (; !next.done; next = wanted.next()) yield { key: next.value, kind: "missing" };
}

/** The differing rows of one derived table, from key `start` on. */
export function rowDifferences<T extends DerivedTable>(
  stored: RowSource,
  expected: RowSource,
  table: T,
  start?: Key,
): Iterable<Difference<KeyOf<T>>> {
  const text = (source: RowSource, key: KeyOf<T>) => JSON.stringify(source.get(table, key));
  return walk<KeyOf<T>>(stored.keys(table, start), expected.keys(table, start), (key) => {
    try {
      return text(stored, key) === text(expected, key) ? "same" : "altered";
    } catch {
      return "unreadable";
    }
  });
}

/** The differing tiles, from key `start` on. */
export function tileDifferences(
  stored: Pick<Store, "tile" | "tileKeys">,
  expected: Pick<Store, "tile" | "tileKeys">,
  start?: TileKey,
): Iterable<Difference<TileKey>> {
  return walk(stored.tileKeys(start), expected.tileKeys(start), (key) =>
    Buffer.compare(stored.tile(...key)!, expected.tile(...key)!) === 0 ? "same" : "altered",
  );
}

const WORDS = {
  missing: "is missing on disk",
  surplus: "is on disk, but the entries do not make it",
  altered: "differs from the one that the entries make",
  unreadable: "cannot be read",
} as const;

/** A sentence without a full stop. */
export function describeDifference(what: string, { key, kind }: Difference<Key>): string {
  return `${what} ${JSON.stringify(key)} ${WORDS[kind]}`;
}

/** A sentence for each derived row that differs. */
export function* stateDifferences(stored: RowSource, expected: RowSource): Iterable<string> {
  for (const table of DERIVED_TABLES)
    for (const difference of rowDifferences(stored, expected, table)) yield describeDifference(table, difference);
}

/** A sentence for each term whose postings are not those that the entries make; for logs that fit into memory. */
export function* postingDifferences(stored: Postings, expected: TermTable): Iterable<string> {
  let count = 0;
  for (const [term, indexes] of expected) {
    count += indexes.length;
    const list = stored.list(term);
    const held = Array.from({ length: list.length }, (_, rank) => list.at(rank)).join();
    if (held !== indexes.join())
      yield `postings of kind ${term.charCodeAt(0)}: entries ${held} instead of ${indexes.join()}`;
  }
  if (stored.count !== count) yield `${stored.count} postings are held, but the entries make ${count}`;
}
