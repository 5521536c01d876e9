/**
 * Which entries a view shows without their payload, and by which entry each is withheld. There are few of them, so all are in
 * memory. Reads for others go through here; checks of the log, rebuilds and copies on this disk read what is stored.
 */
import type { StoreReader } from "../../store/contract.js";
import { type PostingList, without } from "../../store/postings/lists.js";
import { POSTING, type PostingKind } from "../../store/schema/schema.js";
import { isWithholdable } from "../../verify/events/withheld.js";
import type { CandidatePostings } from "./candidates.js";
import type { EntryReader, Withholdings } from "./reader.js";
import { Seams } from "./seams.js";

/** Terms that say nothing of a payload. */
const KEPT: readonly PostingKind[] = [POSTING.eventType, POSTING.digest];

export class Withheld implements Withholdings {
  readonly #store: Pick<StoreReader, "range">;
  readonly #stored: EntryReader;
  readonly #leafIndexOf: (id: number) => number | undefined;
  #by: ReadonlyMap<number, number> = new Map();
  #indexes: readonly number[] = [];

  /** @param leafIndexOf of an entry that is shown */
  constructor(store: Pick<StoreReader, "range">, stored: EntryReader, leafIndexOf: (id: number) => number | undefined) {
    this.#store = store;
    this.#stored = stored;
    this.#leafIndexOf = leafIndexOf;
  }

  /** Reads the rows again. To be called when one of them has changed, after the size is known. */
  restore(): void {
    const by = new Map<number, number>();
    for (const { key, row } of this.#store.range("withheld")) {
      const leafIndex = this.#leafIndexOf(key);
      // The row of an entry that is not shown yet may be on disk already.
      if (leafIndex === undefined || this.#leafIndexOf(row.withheld_by) === undefined) continue;
      const entry = this.#stored.entry(leafIndex)!;
      if (entry.entry_hash === row.entry_hash && isWithholdable(entry.event_type)) by.set(leafIndex, row.withheld_by);
    }
    this.#by = by;
    this.#indexes = [...by.keys()].sort((a, b) => a - b);
  }

  /** Number of entries that are shown without their payload. */
  get count(): number {
    return this.#by.size;
  }

  /** Leaf indexes of these entries, ascending. */
  get leaves(): readonly number[] {
    return this.#indexes;
  }

  by(leafIndex: number): number | undefined {
    return this.#by.size ? this.#by.get(leafIndex) : undefined;
  }

  /** The list of a term without the entries whose payload has the term and is not shown. */
  list(term: string, list: PostingList): PostingList {
    return this.#indexes.length && !isKept(term) ? without(list, this.#indexes) : list;
  }

  /** Postings without those of payloads that are not shown. */
  postings(postings: CandidatePostings): CandidatePostings {
    if (!this.#indexes.length) return postings;
    return {
      list: (term) => this.list(term, postings.list(term)),
      range: (low, high) => {
        const piece = postings.range(low, high);
        return isKept(low) ? piece : { ...piece, indexes: piece.indexes.filter((index) => !this.#by.has(index)) };
      },
      rangeCount: (low, high) => postings.rangeCount(low, high),
    };
  }
}

/** Those of a log of `size` entries that is not opened. @param stored reads what is stored */
export function withheldIn(store: Pick<StoreReader, "range" | "floor">, stored: EntryReader, size: number): Withheld {
  const seams = new Seams(store, () => 0);
  seams.restore();
  const withheld = new Withheld(store, stored, (id) => seams.leafIndexOf(id, size));
  withheld.restore();
  return withheld;
}

const isKept = (term: string): boolean => KEPT.some((kind) => kind === term.charCodeAt(0));
