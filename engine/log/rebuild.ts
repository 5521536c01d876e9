/**
 * State from entries alone: what `apply` makes of the whole log, to compare with what is on disk.
 */
import { Layer } from "../store/changeset.js";
import type { Postings } from "../store/postings.js";
import { DERIVED_TABLES } from "../store/schema.js";
import type { Store } from "../store/store.js";
import { instantOf, microsOf } from "./instant.js";
import { addDigestTerm, addLogTerms, type LoggedEvent, type Projection } from "./projection.js";
import type { EntryReader } from "./reader.js";
import { applySeam, EMPTY_EDGE } from "./seams.js";
import { LayeredState } from "./state.js";

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
  layer: Layer,
): void {
  projection.addTerms(stored.event, layer);
  addLogTerms(stored.event, layer);
  for (const digest of stored.digests) addDigestTerm(digest, stored.event.leafIndex, layer);
}

/** Gives `postings` the terms of the entries that no run holds yet, up to `size`: a few thousand at most. */
export function catchUp(postings: Postings, reader: EntryReader, size: number, projection: Projection): void {
  if (size <= postings.size) return;
  const layer = new Layer();
  for (let index = postings.size; index < size; index++) addStoredTerms(storedEvent(reader, index)!, projection, layer);
  postings.add(size, layer.terms);
}

/** Derived rows and terms of the first `size` entries, in memory: for logs that fit there. */
export function rebuildState(reader: EntryReader, size: number, projection: Projection): Layer {
  const layer = new Layer();
  const state = new LayeredState(EMPTY_STORE, null, [layer]);
  let previous = EMPTY_EDGE;
  for (let index = 0; index < size; index++) {
    const stored = storedEvent(reader, index);
    if (!stored) continue;
    const edge = { id: stored.event.id, micros: microsOf(stored.event.timestamp) };
    applySeam(previous, edge, index, state);
    previous = edge;
    projection.apply(stored.event, state);
    addStoredTerms(stored, projection, layer);
  }
  return layer;
}

/** Sentences, one for each derived row that differs between disk and `rebuilt`. */
export function compareRows(store: Pick<Store, "range">, rebuilt: Layer): string[] {
  const differences: string[] = [];
  for (const table of DERIVED_TABLES) {
    const expected = new Map(
      [...rebuilt.changes(table)].flatMap(({ key, row }) =>
        row === undefined ? [] : [[JSON.stringify(key), JSON.stringify(row)]],
      ),
    );
    for (const { key, row } of store.range(table)) {
      const id = JSON.stringify(key);
      const wanted = expected.get(id);
      expected.delete(id);
      if (wanted === undefined) differences.push(`${table} ${id}: on disk, but no entry makes it`);
      else if (wanted !== JSON.stringify(row)) differences.push(`${table} ${id}: differs from what the entries make`);
    }
    for (const id of expected.keys()) differences.push(`${table} ${id}: missing on disk`);
  }
  return differences;
}
