/**
 * Derives rows and terms from an entry. Records of a journal, imported history and every rebuild use this code; a live
 * append does the same while its command runs (`write/forming.ts`).
 */
import { CairnlogError } from "../../base/error.js";
import { Layer, type RowChange } from "../../store/changeset.js";
import type { Refiling } from "../../store/migrations.js";
import { FLUSH_ENTRIES, Postings } from "../../store/postings/postings.js";
import { TermTable } from "../../store/postings/termtable.js";
import { DERIVED_TABLES, type DerivedTable } from "../../store/schema/schema.js";
import { eventIn } from "../../verify/events/withheld.js";
import { applyWithholding } from "../operator/entries.js";
import { applyRotation } from "../operator/operators.js";
import { damagedEntry, EntryReader } from "../read/reader.js";
import { applySeam, type Edge } from "../read/seams.js";
import { instantOf, microsOf } from "../state/clock.js";
import {
  addDigestTerm,
  addLogTerms,
  type DerivedWriter,
  type LoggedEvent,
  type Projection,
} from "../state/projection.js";
import { LayeredState } from "../state/rows.js";

/** The tables that follow from entries through the projection alone. */
export const DERIVED_ANEW: readonly DerivedTable[] = DERIVED_TABLES.filter(
  (table) => table !== "seams" && table !== "operatorRotations" && table !== "withheld",
);
/** Rows removed, and entries whose rows are written, in one transaction. */
const ROWS_AT_ONCE = 1_000;
const ENTRIES_AT_ONCE = 1_000;

/** The parts of an entry from which rows and terms are derived. */
interface DerivableEntry extends Edge {
  readonly event: LoggedEvent;
  /** Every digest in `entry_hashes`, hex. */
  readonly digests: readonly string[];
}

/** Writes the rows derived from `entry`, which comes after `before`, and adds its terms. */
export function deriveRows(
  entry: DerivableEntry,
  before: Edge,
  projection: Projection,
  state: DerivedWriter,
  terms: TermTable,
): void {
  applySeam(before, entry, entry.event.leafIndex, state);
  applyRotation(entry.event, state);
  applyWithholding(entry.event, state);
  projection.apply(entry.event, state);
  addTerms(entry, projection, terms);
}

/** The stored entry at `leafIndex`; undefined if there is none. */
export function storedEntry(reader: EntryReader, leafIndex: number): DerivableEntry | undefined {
  const entry = reader.entry(leafIndex);
  if (!entry) return undefined;
  const { id, event_type, payload, entry_hashes } = eventIn(entry);
  const timestamp = instantOf(entry.timestamp) ?? entry.timestamp;
  return {
    id,
    micros: microsOf(timestamp),
    event: { id, leafIndex, timestamp, event_type, payload },
    digests: entry_hashes.map(({ digest_hex }) => digest_hex),
  };
}

/**
 * Files the entries of a log of `size` entries whose postings are missing, until a few thousand are left for `catchUp`.
 * Memory holds two stretches at a time, however many entries there are. It waits for runs, but not for their merges, so
 * that an interrupted merge does not delay a start.
 *
 * If we crash here: every run that is on disk counts, and the next call goes on behind the last one. If runs cannot be
 * written, the rest is left to `catchUp`: a log on a full disk must still open.
 */
export async function fileMissing(
  postings: Postings,
  reader: EntryReader,
  size: number,
  projection: Projection,
): Promise<void> {
  while (size - postings.size > FLUSH_ENTRIES && !postings.isStopped) {
    catchUp(postings, reader, postings.size + FLUSH_ENTRIES, projection);
    await postings.relieved(0);
  }
}

/** Adds the terms of the entries that are in no run yet, up to `size`, to `postings`. Memory holds all of them. */
export function catchUp(postings: Postings, reader: EntryReader, size: number, projection: Projection): void {
  if (size <= postings.size) return;
  const terms = new TermTable();
  for (let index = postings.size; index < size; index++)
    try {
      addTerms(storedEntry(reader, index)!, projection, terms);
    } catch (cause) {
      // Damaged bytes may be JSON without the members of an entry.
      throw cause instanceof CairnlogError ? cause : damagedEntry(index, cause);
    }
  postings.add(size, terms);
}

/**
 * What a migration needs to file the entries of a log with this projection, and to derive its rows.
 *
 * If we crash here: runs and rows are removed first, and the migration runs again at the next start, from the beginning.
 */
export const refilingFor = (projection: Projection): Refiling => ({
  async fileAnew(store) {
    await store.postings.removeRuns();
    await store.words.removeRuns();
    await store.titles.removeRuns();
    const postings = new Postings(store.postings);
    const reader = new EntryReader(store);
    const last = store.lastBatch();
    const size = last ? last.firstIndex + last.count : 0;
    try {
      for (let from = 0; from < size; from += FLUSH_ENTRIES) {
        catchUp(postings, reader, Math.min(size, from + FLUSH_ENTRIES), projection);
        // Memory holds one stretch of entries at a time, however many there are.
        await postings.settle();
      }
    } finally {
      await postings.close();
    }
  },

  async deriveAnew(store) {
    const commit = (rows: readonly RowChange[]) =>
      store.commit({ after: store.position().sequence, position: null, batches: [], rows, tiles: [] });
    const meta = store.get("meta", "log")!;
    // An earlier version refuses a log with these marks, whose rows it would take for complete.
    await commit([{ table: "meta", key: "log", row: { ...meta, rebuilding: true, migrating: true } }]);
    for (const table of DERIVED_ANEW)
      for (;;) {
        const rows = [...store.range(table, undefined, undefined, { limit: ROWS_AT_ONCE })];
        if (!rows.length) break;
        await commit(rows.map(({ key }) => ({ table, key, row: undefined })));
      }
    const reader = new EntryReader(store);
    const last = store.lastBatch();
    const size = last ? last.firstIndex + last.count : 0;
    for (let from = 0; from < size; from += ENTRIES_AT_ONCE) {
      const layer = new Layer();
      const state = new LayeredState(store, null, [layer]);
      for (let index = from; index < Math.min(size, from + ENTRIES_AT_ONCE); index++)
        projection.apply(storedEntry(reader, index)!.event, state);
      await commit(layer.split().derived);
    }
  },
});

function addTerms({ event, digests }: DerivableEntry, projection: Projection, terms: TermTable): void {
  projection.addTerms(event, terms);
  addLogTerms(event, terms);
  for (const digest of digests) addDigestTerm(digest, event.leafIndex, terms);
}
