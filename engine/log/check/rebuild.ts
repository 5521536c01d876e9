/**
 * State from entries alone: the rows and terms that `apply` makes of them, in order. Memory holds what was made since it
 * was last taken away, so a log that fits in memory is replayed at once, and any other in steps.
 */
import { compareKeys } from "lmdb";
import { Layer } from "../../store/changeset.js";
import type { Postings } from "../../store/postings/postings.js";
import { TermTable } from "../../store/postings/termtable.js";
import type { KeyOf, RowOf, TableName } from "../../store/schema.js";
import type { Store } from "../../store/store.js";
import { instantOf, microsOf } from "../instant.js";
import type { EntryReader } from "../read/reader.js";
import { applySeam, EMPTY_EDGE } from "../read/seams.js";
import { LayeredState } from "../write/layered.js";
import { addDigestTerm, addLogTerms, type LoggedEvent, type Projection } from "../write/projection.js";
import type { RowSource } from "./differences.js";

const EMPTY_STORE: Pick<Store, "get" | "range"> = { get: () => undefined, range: () => [] };

/** The stored entry at `leafIndex` as the event it was, with its digests; undefined when there is none. */
export function storedEvent(
  reader: EntryReader,
  leafIndex: number,
): { readonly event: LoggedEvent; readonly digests: readonly string[] } | undefined {
  const entry = reader.entry(leafIndex);
  if (!entry) return undefined;
  const { id, timestamp, event_type, payload, entry_hashes } = entry;
  return {
    event: { id, leafIndex, timestamp: instantOf(timestamp) ?? timestamp, event_type, payload },
    digests: entry_hashes.map(({ digest_hex }) => digest_hex),
  };
}

/** Adds every term of one stored entry. */
export function addStoredTerms(
  stored: { readonly event: LoggedEvent; readonly digests: readonly string[] },
  projection: Projection,
  terms: TermTable,
): void {
  projection.addTerms(stored.event, terms);
  addLogTerms(stored.event, terms);
  for (const digest of stored.digests) addDigestTerm(digest, stored.event.leafIndex, terms);
}

/** Gives `postings` the terms of the entries that no run holds yet, up to `size`: a few thousand at most. */
export function catchUp(postings: Postings, reader: EntryReader, size: number, projection: Projection): void {
  if (size <= postings.size) return;
  const terms = new TermTable();
  for (let index = postings.size; index < size; index++) addStoredTerms(storedEvent(reader, index)!, projection, terms);
  postings.add(size, terms);
}

/** Derived rows and terms of entries, as they are replayed one after the other. */
export class Replay implements RowSource {
  readonly #reader: EntryReader;
  readonly #projection: Projection;
  readonly #taken: Pick<Store, "get" | "range">;
  #layer = new Layer();
  #last = EMPTY_EDGE;

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
      const stored = storedEvent(this.#reader, index);
      if (!stored) continue;
      const edge = { id: stored.event.id, micros: microsOf(stored.event.timestamp) };
      applySeam(this.#last, edge, index, state);
      this.#last = edge;
      this.#projection.apply(stored.event, state);
      addStoredTerms(stored, this.#projection, this.#layer.terms);
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
