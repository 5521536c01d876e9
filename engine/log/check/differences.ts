/**
 * Compares the rows, tiles and postings of a log with those that the entries make. Rows and tiles are walked side by side in
 * key order.
 */
import { compareKeys } from "../../native/lmdb.js";
import { Layer } from "../../store/changeset.js";
import type { Postings } from "../../store/postings/postings.js";
import type { TermTable } from "../../store/postings/termtable.js";
import {
  DERIVED_TABLES,
  type DerivedTable,
  type Key,
  type KeyOf,
  type RowOf,
  type TableName,
} from "../../store/schema/schema.js";
import type { Store, TileKey } from "../../store/store.js";
import { deriveRows, storedEntry } from "../apply/derive.js";
import type { EntryReader } from "../read/reader.js";
import { type Edge, EMPTY_EDGE } from "../read/seams.js";
import type { Projection } from "../state/projection.js";
import { LayeredState } from "../state/rows.js";

/** Rows in key order. Reading a row may throw if its bytes are damaged. */
type RowSource = Pick<Store, "get" | "keys">;

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

// Rebuilds state from entries alone: the rows and terms that `apply` makes of them, in order. Memory holds only the
// results since the last call of `take`. So a log that fits in memory can be replayed at once, and any other in steps.

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
      deriveRows(entry, this.#last, this.#projection, state, this.#layer.terms);
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
