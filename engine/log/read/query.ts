/**
 * Finding entries: `spec.md`, filter and search rules 1 to 5, and titles. Every criterion becomes a sorted list of leaf indexes; one
 * list is paged by rank, several are intersected, shortest first. What has to be walked is walked in slices: whoever asks
 * decides how much that is.
 */

import { CairnlogError } from "../../error.js";
import { hashedTerm, hashTerm } from "../../store/postings/term.js";
import { POSTING } from "../../store/schema.js";
import { SEARCH_MEMBERS } from "../../verify/contract.js";
import type { Entry } from "../../verify/entry.js";
import { addMatches, type CandidateSources, type Candidates, digits, REACH, type Slices, text } from "./candidates.js";
import { arrayList, disjointUnion, type IndexList, intersect } from "./index-list.js";
import type { Stretch } from "./seams.js";
import { type TitleSources, titledIndexes } from "./titled.js";

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
  /** Each word of it begins a word of a title or name of the entry (`TITLE_MEMBERS`). */
  readonly title?: string;
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

type Sources = CandidateSources & TitleSources;

const HEX = /^[0-9a-f]+$/;
const COMPLETE_HASH = /^(?:sha256:)?((?:[0-9a-f]{64}|[0-9a-f]{128}))$/;
const PREFIX = "sha256:";

/** Steps of a walk between two pauses. */
const WALK_STEPS = 1_024;
/** Digits that a prefix search behind `sha256:` needs: with fewer it would walk through most of the log. */
const LEAST_DIGITS = 4;

/**
 * Matches number `offset` to `offset + limit` of those that `criteria` select, and how many there are in all.
 * @throws CairnlogError `invalid-input` for a search term or a title that matches too much; `indexing`
 */
export function* matching(sources: Sources, criteria: Criteria, offset: number, limit: number): Slices<Matches> {
  const { search, title } = criteria;
  const found: number[][] = [];
  if (search !== undefined) found.push(yield* searchIndexes(sources, search.toLowerCase()));
  if (title !== undefined) found.push(yield* titledIndexes(sources, title));
  const lists = new Alternatives(sources, criteria, found.map(arrayList));
  const page = new Page(offset, limit);
  for (const { from, to } of criteria.within ?? [{ from: 0, to: sources.size }])
    yield* addMatchesIn({ from: Math.min(to, Math.max(from, criteria.from ?? 0)), to }, lists, page);
  return page;
}

/** Matches as they are found, ascending. Only those of the page are kept: all of them may be most of the log. */
class Page implements Matches {
  readonly #offset: number;
  readonly #limit: number;
  total = 0;
  readonly indexes: number[] = [];

  constructor(offset: number, limit: number) {
    this.#offset = offset;
    this.#limit = limit;
  }

  /** Adds the next `count` matches. @param window returns `length` of them, from a rank on */
  add(count: number, window: (rank: number, length: number) => readonly number[]): void {
    const first = Math.max(0, this.#offset - this.total);
    const wanted = Math.min(count - first, this.#limit - this.indexes.length);
    if (wanted > 0) for (const index of window(first, wanted)) this.indexes.push(index);
    this.total += count;
  }
}

/** Adds the common indexes of all lists in one stretch. */
function* addMatchesIn({ from, to }: Stretch, lists: Alternatives, page: Page): Slices<void> {
  const [first, second] = lists.get();
  const [only, ...others] = first!;
  if (!only) page.add(to - from, (rank, length) => Array.from({ length }, (_, i) => from + rank + i));
  else if (!others.length && !second) {
    const start = only.seek(from);
    // One search for the whole page: where each of 50 was looked for by its rank, that was most of what a page cost.
    page.add(only.seek(to) - start, (rank, length) => only.window(only.at(start + rank), length));
  } else yield* walk({ from, to }, lists, page);
}

/** Adds what the lists of an alternative have in common, or of both together. */
function* walk({ from, to }: Stretch, lists: Alternatives, page: Page): Slices<void> {
  for (let next = from; next < to; ) {
    const walked = lists.get().map((alternative) => {
      const found: number[] = [];
      return { found, ...intersect(alternative, { from: next, to, steps: WALK_STEPS }, found) };
    });
    // As far as all of them have come. What one found beyond is found again.
    next = Math.min(...walked.map((part) => part.next));
    const [one, other] = walked.map(({ found }) => found.filter((index) => index < next));
    const matches = other ? merged(one!, other) : one!;
    page.add(matches.length, (rank, length) => matches.slice(rank, rank + length));
    if (next >= to) return;
    yield;
    lists.drop();
  }
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
  readonly #searched: readonly IndexList[];
  #lists: readonly (readonly IndexList[])[] | null = null;

  constructor(sources: Sources, criteria: Criteria, searched: readonly IndexList[]) {
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
    const first = [...criteriaLists(this.#sources, criteria), ...this.#searched];
    if (orTag === undefined) return [first];
    const tagged = this.#sources.postings.list(hashedTerm(POSTING.tag, orTag.toLowerCase()));
    if (!tagged.length) return [first];
    const { tags: _, ...others } = criteria;
    return [first, [...criteriaLists(this.#sources, others), ...this.#searched, tagged]];
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

/** Entries that match a folded search term, ascending, each once. Costs what matches it. */
function* searchIndexes(sources: Sources, term: string): Slices<number[]> {
  checkReach(term);
  const found = new Set<number>();
  const sought = {
    matches: (entry: Entry) => matchesSearch(entry, term),
    tooMany: () => tooWide(`More than ${REACH} entries match. Give more of it.`),
    boundsTerms: false,
  };
  for (const range of candidates(term)) yield* addMatches(sources, range, sought, found);
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
  yield text(POSTING.fieldText, term);
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
