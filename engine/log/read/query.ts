/**
 * Finding entries: `spec.md`, filter and search rules 1 to 5. Every criterion becomes a sorted list of leaf indexes; one
 * list is paged by rank, several are intersected, shortest first. What has to be walked is walked in slices: whoever asks
 * decides how much that is.
 */

import { CairnlogError } from "../../error.js";
import type { Postings } from "../../store/postings/postings.js";
import { hashedTerm, hashTerm, hexPrefixTerm, textPrefixTerm } from "../../store/postings/term.js";
import { POSTING, type PostingKind } from "../../store/schema.js";
import { SEARCH_MEMBERS } from "../../verify/contract.js";
import type { Entry } from "../../verify/entry.js";
import { arrayList, disjointUnion, type IndexList, intersect } from "./index-list.js";
import type { Stretch } from "./seams.js";

/** An entry must meet every criterion that is given. */
export interface Criteria {
  /** The event type is one of these. */
  readonly eventTypes?: readonly string[];
  /** The entry carries all of these tags (rule 1). */
  readonly tags?: readonly string[];
  /** A tag that will do instead of `tags`. */
  readonly orTag?: string;
  /** Rules 2, 3 and 4. */
  readonly search?: string;
  /** The entry names this key in one of the six fields (rule 5). */
  readonly fingerprint?: string;
  /** The entry has this term. */
  readonly term?: string;
  /** The entry's `document_hash`, bare or prefixed. */
  readonly document?: string;
  /** Only these leaf indexes: ascending stretches that do not touch. */
  readonly within?: readonly Stretch[];
  /** Only leaf indexes from here on. */
  readonly from?: number;
}

export interface Matches {
  readonly total: number;
  /** Leaf indexes of the page, ascending. */
  readonly indexes: readonly number[];
}

interface Sources {
  readonly postings: Pick<Postings, "list" | "range">;
  readonly size: number;
  entry(leafIndex: number): Entry | undefined;
}

const KEY_HEX = 32;
const KEY_BYTES = 16;
const HEX = /^[0-9a-f]+$/;
const COMPLETE_HASH = /^(?:sha256:)?((?:[0-9a-f]{64}|[0-9a-f]{128}))$/;
const DIGITS = "0123456789abcdef";
const PREFIX = "sha256:";

/** Work that pauses at every `yield`, after about a millisecond. What is appended meanwhile changes nothing in the result. */
type Slices<T> = Generator<void, T, void>;

/** Steps of a walk between two pauses. */
const WALK_STEPS = 1_024;
/** Postings that are read between two pauses. */
const RANGE_STEPS = 1_024;
/** Entries that a search by prefix may match; beyond, it wants more digits. Bounds memory and the time to sort them. */
const SEARCH_REACH = 200_000;
/** Digits that a prefix search behind `sha256:` needs: with fewer it would walk through most of the log. */
const LEAST_DIGITS = 4;

/**
 * Matches number `offset` to `offset + limit` of those that `criteria` select, and how many there are in all.
 * @throws CairnlogError `invalid-input` for a search term that matches too much
 */
export function* matching(sources: Sources, criteria: Criteria, offset: number, limit: number): Slices<Matches> {
  const found =
    criteria.search === undefined ? undefined : yield* searchIndexes(sources, criteria.search.toLowerCase());
  const lists = new Alternatives(sources, criteria, found && arrayList(found));
  let total = 0;
  const indexes: number[] = [];
  for (const { from, to } of criteria.within ?? [{ from: 0, to: sources.size }]) {
    const { count, page } = yield* matchesIn({ from: Math.min(to, Math.max(from, criteria.from ?? 0)), to }, lists);
    const first = Math.max(0, offset - total);
    const wanted = Math.min(count - first, limit - indexes.length);
    if (wanted > 0) for (const index of page(first, wanted)) indexes.push(index);
    total += count;
  }
  return { total, indexes };
}

/** The common indexes of all lists in one stretch: their number, and `length` of them from a rank on. */
interface StretchMatches {
  readonly count: number;
  page(rank: number, length: number): readonly number[];
}

function* matchesIn({ from, to }: Stretch, lists: Alternatives): Slices<StretchMatches> {
  const [first, second] = lists.get();
  const [only, ...others] = first!;
  if (!only) return { count: to - from, page: (rank, length) => Array.from({ length }, (_, i) => from + rank + i) };
  if (!others.length && !second) {
    const start = only.seek(from);
    // One search for the whole page: where each of 50 was looked for by its rank, that was most of what a page cost.
    return { count: only.seek(to) - start, page: (rank, length) => only.window(only.at(start + rank), length) };
  }
  let indexes = yield* walked(lists, 0, from, to);
  if (second) indexes = merged(indexes, yield* walked(lists, 1, from, to));
  return { count: indexes.length, page: (rank, length) => indexes.slice(rank, rank + length) };
}

/** What the lists of an alternative have in common. */
function* walked(lists: Alternatives, alternative: 0 | 1, from: number, to: number): Slices<number[]> {
  const found: number[] = [];
  for (let next = from; next < to; ) {
    ({ next } = intersect(lists.get()[alternative]!, { from: next, to, steps: WALK_STEPS }, found));
    if (next >= to) break;
    yield;
    lists.drop();
  }
  return found;
}

/** All of two ascending lists, ascending, each once. */
function merged(one: readonly number[], other: readonly number[]): number[] {
  const all: number[] = [];
  for (let i = 0, j = 0; i < one.length || j < other.length; ) {
    const [a, b] = [one[i] ?? Number.POSITIVE_INFINITY, other[j] ?? Number.POSITIVE_INFINITY];
    all.push(Math.min(a, b));
    if (a <= b) i++;
    if (b <= a) j++;
  }
  return all;
}

/** The lists of the criteria: an entry that all lists of an alternative have is a match. There is a second one for `orTag`. */
class Alternatives {
  readonly #sources: Sources;
  readonly #criteria: Criteria;
  readonly #searched: IndexList | undefined;
  #lists: readonly (readonly IndexList[])[] | null = null;

  constructor(sources: Sources, criteria: Criteria, searched: IndexList | undefined) {
    this.#sources = sources;
    this.#criteria = criteria;
    this.#searched = searched;
  }

  get(): readonly (readonly IndexList[])[] {
    this.#lists ??= this.#make();
    return this.#lists;
  }

  /** After a pause: a list of postings is valid until the next append only, but what was in it stays there. */
  drop(): void {
    this.#lists = null;
  }

  #make(): readonly (readonly IndexList[])[] {
    const { orTag, ...criteria } = this.#criteria;
    const searched = this.#searched ? [this.#searched] : [];
    const first = [...criteriaLists(this.#sources, criteria), ...searched];
    if (orTag === undefined) return [first];
    const tagged = this.#sources.postings.list(hashedTerm(POSTING.tag, orTag.toLowerCase()));
    if (!tagged.length) return [first];
    const { tags: _, ...others } = criteria;
    return [first, [...criteriaLists(this.#sources, others), ...searched, tagged]];
  }
}

function criteriaLists(sources: Sources, criteria: Criteria): IndexList[] {
  const { postings, size } = sources;
  const lists: IndexList[] = [];
  if (criteria.eventTypes) {
    const types = [...new Set(criteria.eventTypes)];
    lists.push(
      disjointUnion(
        types.map((type) => postings.list(hashedTerm(POSTING.eventType, type))),
        size,
      ),
    );
  }
  for (const tag of new Set(criteria.tags?.map((text) => text.toLowerCase())))
    lists.push(postings.list(hashedTerm(POSTING.tag, tag)));
  if (criteria.fingerprint !== undefined)
    lists.push(postings.list(hashTerm(POSTING.fingerprint, criteria.fingerprint.toLowerCase())));
  if (criteria.document !== undefined)
    lists.push(postings.list(hashTerm(POSTING.document, criteria.document.toLowerCase())));
  if (criteria.term !== undefined) lists.push(postings.list(criteria.term));
  return lists;
}

/** Postings that may match a search term. */
interface Candidates {
  readonly low: string;
  readonly high: string;
  /** Whether the 16 bytes of a term say all there is to say. */
  readonly certain: boolean;
  /** Parts of it, one of each next digit; null where it is a single term, or not of digits. */
  readonly parts: (() => Candidates[]) | null;
}

/** Entries that match a folded search term, ascending, each once. Costs what matches it. */
function* searchIndexes(sources: Sources, term: string): Slices<number[]> {
  checkReach(term);
  const found = new Set<number>();
  for (const range of candidates(term)) yield* addMatches(sources, term, range, found);
  return [...Float64Array.from(found).sort()];
}

/** @throws CairnlogError `invalid-input` for `s` to `sha256:123`: nearly every entry has a hash that begins so */
function checkReach(term: string): void {
  const isShort = term.startsWith(PREFIX) && term.length < PREFIX.length + LEAST_DIGITS;
  if (PREFIX.startsWith(term) || (isShort && HEX.test(term.slice(PREFIX.length))))
    throw tooWide(`Give at least ${LEAST_DIGITS} digits behind sha256:, or digits alone.`);
}

function tooWide(message: string): CairnlogError {
  return new CairnlogError("invalid-input", `/search: ${message}`, { details: [{ path: "/search", message }] });
}

function* addMatches(sources: Sources, term: string, range: Candidates, found: Set<number>): Slices<void> {
  const { low, high, certain, parts } = range;
  const add = (index: number) => {
    if (!found.has(index) && (certain || matchesSearch(sources.entry(index)!, term))) found.add(index);
  };
  if (low === high) {
    // One term can have any number of entries: a document that everybody attests.
    for (let from = 0; ; ) {
      const window = sources.postings.list(low).window(from, RANGE_STEPS);
      for (const index of window) if (index < sources.size) add(index);
      if (window.length < RANGE_STEPS) return;
      from = window.at(-1)! + 1;
      yield;
    }
  }
  let count = 0;
  for (const index of sources.postings.range(low, high)) {
    // Where a walk stood, nothing tells after a pause: what is too much for one slice is begun anew in parts.
    if (parts && ++count > RANGE_STEPS) break;
    if (index < sources.size) add(index);
  }
  if (found.size > SEARCH_REACH) throw tooWide(`More than ${SEARCH_REACH} entries match. Give more of it.`);
  if (!parts || count <= RANGE_STEPS) return;
  for (const part of parts()) {
    yield;
    yield* addMatches(sources, term, part, found);
  }
}

/** Everything that may match. */
function* candidates(term: string): Iterable<Candidates> {
  const complete = COMPLETE_HASH.exec(term)?.[1];
  if (HEX.test(term)) yield digits(POSTING.digest, term);
  if (complete) {
    yield digits(POSTING.bareHash, complete);
    yield digits(POSTING.prefixedHash, complete);
    return;
  }
  if (HEX.test(term)) yield digits(POSTING.bareHash, term);
  if (term.startsWith(PREFIX)) {
    const hex = term.slice(PREFIX.length);
    if (HEX.test(hex)) yield digits(POSTING.prefixedHash, hex);
  }
  const low = textPrefixTerm(POSTING.fieldText, term);
  const bytes = Buffer.byteLength(term, "utf8");
  const high = low.slice(0, 1 + Math.min(bytes, KEY_BYTES)).padEnd(1 + KEY_BYTES, "\xff");
  // Shorter values are filled up with NULs, so a term that holds one proves nothing.
  yield { low, high, certain: bytes <= KEY_BYTES && !term.includes("\0"), parts: null };
}

/** The terms of a kind that begin with these digits. */
function digits(kind: PostingKind, hex: string): Candidates {
  const high = hexPrefixTerm(kind, hex.slice(0, KEY_HEX).padEnd(KEY_HEX, "f"));
  const parts = () => [...DIGITS].map((digit) => digits(kind, hex + digit));
  const isSplit = hex.length < KEY_HEX;
  return { low: hexPrefixTerm(kind, hex), high, certain: hex.length <= KEY_HEX, parts: isSplit ? parts : null };
}

/** The search rules, applied to one entry; `term` is folded. */
function matchesSearch(entry: Entry, term: string): boolean {
  if (entry.entry_hashes.some(({ digest_hex }) => digest_hex.toLowerCase().startsWith(term))) return true;
  const values = SEARCH_MEMBERS.map((field) => entry.payload[field])
    .filter((value) => typeof value === "string")
    .map((value) => value.toLowerCase());
  const complete = COMPLETE_HASH.exec(term)?.[1];
  return complete
    ? values.some((value) => value === complete || value === PREFIX + complete)
    : values.some((value) => value.startsWith(term));
}
