/**
 * Seams: places in imported history where ids have a gap or time goes back. Between two seams ids are dense and
 * timestamps ascend, so an id or a moment is found by one search. Entries that were appended after the last seam need
 * no search.
 */
import { leastWhere } from "../../base/search.js";
import type { StoreReader } from "../../store/contract.js";
import type { DerivedWriter } from "../state/projection.js";

/** The id and time of an entry at the end of a log, with which the next entry is compared. */
export interface Edge {
  /** 0 on an empty log; so is `micros`. */
  readonly id: number;
  readonly micros: number;
}
export const EMPTY_EDGE: Edge = { id: 0, micros: 0 };

/** Leaf indexes [from, to). */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Writes the seam between `before` and the entry at `leafIndex`, if there is one. */
export function applySeam(before: Edge, entry: Edge, leafIndex: number, state: DerivedWriter): void {
  if (entry.id === before.id + 1 && (leafIndex === 0 || entry.micros >= before.micros)) return;
  state.put("seams", entry.id, { leaf_index: leafIndex, starts_at: entry.micros, before: before.micros });
}

export class Seams {
  readonly #store: Pick<StoreReader, "floor" | "range">;
  readonly #micros: (leafIndex: number) => number;
  #last: { readonly id: number; readonly leafIndex: number } | null = null;

  /** @param micros returns the timestamp of the entry at a leaf index */
  constructor(store: Pick<StoreReader, "floor" | "range">, micros: (leafIndex: number) => number) {
    this.#store = store;
    this.#micros = micros;
  }

  /** Reads the state from disk again. */
  restore(): void {
    const last = this.#store.floor("seams", Number.MAX_SAFE_INTEGER);
    this.#last = last ? { id: last.key, leafIndex: last.row.leaf_index } : null;
  }

  /** The leaf index of the entry with this id, in a log of `size` entries; undefined if there is none. */
  leafIndexOf(id: number, size: number): number | undefined {
    if (!Number.isSafeInteger(id) || id < 1) return undefined;
    const leafIndex = this.leafIndexFrom(id, size);
    return leafIndex < size && this.leafIndexFrom(id + 1, size) > leafIndex ? leafIndex : undefined;
  }

  /** The leaf index of the first entry whose id is `id` (at least 1) or higher; `size` if there is none. */
  leafIndexFrom(id: number, size: number): number {
    if (!this.#last || id >= this.#last.id) {
      const leafIndex = this.#last ? this.#last.leafIndex + id - this.#last.id : id - 1;
      return Math.min(leafIndex, size);
    }
    const seam = this.#store.floor("seams", id);
    const leafIndex = seam ? seam.row.leaf_index + id - seam.key : id - 1;
    const [next] = this.#store.range("seams", id + 1, Number.MAX_SAFE_INTEGER, { limit: 1 });
    return Math.min(leafIndex, next?.row.leaf_index ?? size, size);
  }

  /**
   * The entries with timestamps in [from, to), microseconds, in a log of `size` entries: ascending stretches that do
   * not touch. There is one stretch, unless an imported history has times that go back.
   */
  between(from: number, to: number, size: number): Stretch[] {
    const stretches: Stretch[] = [];
    for (const { start, end, first, last } of this.#ascending(size)) {
      if (end === start || (first !== undefined && first >= to) || (last !== undefined && last < from)) continue;
      const low = first !== undefined && first >= from ? start : this.#search(start, end, from);
      const high = last !== undefined && last < to ? end : this.#search(low, end, to);
      const previous = stretches.at(-1);
      if (previous?.to === low) stretches[stretches.length - 1] = { from: previous.from, to: high };
      else if (low < high) stretches.push({ from: low, to: high });
    }
    return stretches;
  }

  /**
   * Stretches [start, end) in which time ascends, with the times of their first and last entry if a seam stores them.
   */
  *#ascending(size: number): Iterable<{ start: number; end: number; first?: number; last?: number }> {
    let open: { start: number; first?: number } = { start: 0 };
    if (this.#last)
      for (const { row } of this.#store.range("seams")) {
        if (row.leaf_index >= size) break;
        yield { ...open, end: row.leaf_index, last: row.before };
        open = { start: row.leaf_index, first: row.starts_at };
      }
    yield { ...open, end: size };
  }

  /** The first leaf index of [low, high) whose entry is not earlier than `moment`; `high` if there is none. */
  #search(from: number, to: number, moment: number): number {
    if (moment === Number.POSITIVE_INFINITY) return to;
    return leastWhere(from, to, (leafIndex) => this.#micros(leafIndex) >= moment);
  }
}
