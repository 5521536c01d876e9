/**
 * Which entries a view shows without their payload, or without the name in it, and by which entry each is withheld. There are
 * few of them, so all are in memory. Reads for others go through here; checks of the log, rebuilds and copies on this disk
 * read what is stored.
 */
import { leastWhere } from "../../base/search.js";
import type { StoreReader } from "../../store/contract.js";
import { type PostingList, without } from "../../store/postings/lists.js";
import type { WithheldRow } from "../../store/schema/rows.js";
import { POSTING, type PostingKind } from "../../store/schema/schema.js";
import {
  isPayloadOf,
  isShownAs,
  isWithholdable,
  payloadHash,
  withholdingIn,
  withoutName,
} from "../../verify/events/withheld.js";
import { type Entry, namesKey } from "../../verify/tree/entry.js";
import type { CandidatePostings } from "./candidates.js";
import type { EntryReader, Withholdings } from "./reader.js";
import { Seams } from "./seams.js";

/** Terms that say nothing of a payload. */
const KEPT: readonly PostingKind[] = [POSTING.eventType, POSTING.digest];
/** Terms that say something of the name in it. */
const OF_NAMES: readonly PostingKind[] = [POSTING.titleWord, POSTING.earlierTitleWord, POSTING.pseudonymGram];

type WithheldRows = Pick<StoreReader, "get" | "range">;

export class Withheld implements Withholdings {
  readonly #store: WithheldRows;
  readonly #stored: Pick<EntryReader, "entry">;
  readonly #leafIndexOf: (id: number) => number | undefined;
  /** By leaf index: the row, once it is known that it counts. */
  #rows = new Map<number, WithheldRow>();
  #indexes: readonly number[] = [];
  /** Those of them without any payload; made when it is asked for. */
  #whole: readonly number[] | undefined;
  /** By the hash of a payload, as the withholding entry says it: the leaf index. Read when it is asked for. */
  readonly #byPayload = new Map<string, number>();
  readonly #unread: { readonly leafIndex: number; readonly by: number }[] = [];

  /** @param leafIndexOf of an entry that is shown */
  constructor(
    store: WithheldRows,
    stored: Pick<EntryReader, "entry">,
    leafIndexOf: (id: number) => number | undefined,
  ) {
    this.#store = store;
    this.#stored = stored;
    this.#leafIndexOf = leafIndexOf;
  }

  /** Reads all rows again, after the size is known. Entries are read of rows that are new: what is on the log does not change. */
  restore(): void {
    const before = this.#rows;
    this.#rows = new Map();
    for (const { key, row } of this.#store.range("withheld")) this.#add(key, row, before);
    this.#indexes = [...this.#rows.keys()].sort((a, b) => a - b);
  }

  /** Reads the rows of some entries again, after the size is known: the costs do not depend on how many others there are. */
  take(ids: Iterable<number>): void {
    for (const id of ids) {
      const row = this.#store.get("withheld", id);
      const leafIndex = row && this.#add(id, row);
      if (leafIndex === undefined) continue;
      const at = leastWhere(0, this.#indexes.length, (i) => this.#indexes[i]! >= leafIndex);
      if (this.#indexes[at] !== leafIndex) this.#indexes = this.#indexes.toSpliced(at, 0, leafIndex);
    }
  }

  /** @returns the leaf index of the entry if its payload is not shown any more */
  #add(id: number, row: WithheldRow, before: ReadonlyMap<number, WithheldRow> = this.#rows): number | undefined {
    const leafIndex = this.#leafIndexOf(id);
    // The row of an entry that is not shown yet may be on disk already.
    const by = this.#leafIndexOf(row.withheld_by);
    if (leafIndex === undefined || by === undefined) return undefined;
    const known = before.get(leafIndex);
    if (known?.withheld_by !== row.withheld_by || known.entry_hash !== row.entry_hash) {
      const entry = this.#stored.entry(leafIndex)!;
      if (entry.entry_hash !== row.entry_hash || !mayBeWithheld(entry, row)) return undefined;
      this.#unread.push({ leafIndex, by });
    }
    this.#rows.set(leafIndex, row);
    this.#whole = undefined;
    return leafIndex;
  }

  /** Number of entries that are shown without their payload. */
  get count(): number {
    return this.#rows.size;
  }

  /** Leaf indexes of these entries, ascending. */
  get leaves(): readonly number[] {
    return this.#indexes;
  }

  row(leafIndex: number): WithheldRow | undefined {
    return this.#rows.size ? this.#rows.get(leafIndex) : undefined;
  }

  /** The leaf index of the entry that has one of these payloads, and is shown without it. Does nothing if there is none such. */
  like(payloads: Iterable<Parameters<typeof payloadHash>[0]>): number | undefined {
    if (!this.count) return undefined;
    for (const { leafIndex, by } of this.#unread.splice(0)) {
      const withholding = withholdingIn(this.#stored.entry(by)!);
      if (withholding) this.#byPayload.set(withholding.payload_hash, leafIndex);
    }
    for (const payload of payloads) {
      const leafIndex = this.#byPayload.get(payloadHash(payload));
      if (leafIndex === undefined || !this.#rows.has(leafIndex)) continue;
      // The withholding entry of an imported history may name any hash.
      if (isPayloadOf(this.#stored.entry(leafIndex)!, payload)) return leafIndex;
    }
    return undefined;
  }

  /** Leaf indexes of the entries of which a term may say what is not shown. */
  #without(term: string): readonly number[] {
    if (isOf(KEPT, term)) return [];
    if (isOf(OF_NAMES, term)) return this.#indexes;
    this.#whole ??= this.#indexes.filter((leafIndex) => !this.#rows.get(leafIndex)!.shown_hash);
    return this.#whole;
  }

  /** The list of a term without the entries whose payload has the term and is not shown. */
  list(term: string, list: PostingList): PostingList {
    const gone = this.#without(term);
    return gone.length ? without(list, gone) : list;
  }

  /** Postings without those of payloads that are not shown. */
  postings(postings: CandidatePostings): CandidatePostings {
    if (!this.#indexes.length) return postings;
    return {
      list: (term) => this.list(term, postings.list(term)),
      range: (low, high) => {
        const leftOut = new Set(this.#without(low));
        return postings.range(low, high).filter((index) => !leftOut.has(index));
      },
      fillRange: (low, high, bits) => {
        const own = new Int32Array(bits.length);
        postings.fillRange(low, high, own);
        for (const index of this.#without(low)) own[index >>> 5]! &= ~(1 << (index & 31));
        for (let i = 0; i < bits.length; i++) bits[i]! |= own[i]!;
      },
      rangeCount: (low, high) => postings.rangeCount(low, high),
    };
  }
}

/** Those of a log of `size` entries that is not opened. @param stored reads what is stored */
export function withheldIn(
  store: WithheldRows & Pick<StoreReader, "floor">,
  stored: EntryReader,
  size: number,
): Withheld {
  const seams = new Seams(store, () => 0);
  seams.restore();
  const withheld = new Withheld(store, stored, (id) => seams.leafIndexOf(id, size));
  withheld.restore();
  return withheld;
}

/** Whether an entry, as it is stored, may be without what a row withholds of it. */
const mayBeWithheld = ({ event_type, payload }: Entry, row: WithheldRow): boolean =>
  row.shown_hash === undefined
    ? isWithholdable(event_type)
    : payload !== null && namesKey(event_type) && isShownAs(withoutName(payload), row);

/** Whether the row of an entry that is stored without its payload, or without the name in it, answers for that. */
export const isAnsweredFor = (entry: Entry, row: WithheldRow | undefined): boolean =>
  row?.withheld_by === entry.withheld_by &&
  row?.entry_hash === entry.entry_hash &&
  mayBeWithheld(entry, row) &&
  isShownAs(entry.payload, row);

/** What is said of an entry if it does not. */
export const NOT_ANSWERED_FOR = "The payload is missing, and no entry of the operator withholds it.";

const isOf = (kinds: readonly PostingKind[], term: string): boolean =>
  kinds.some((kind) => kind === term.charCodeAt(0));
