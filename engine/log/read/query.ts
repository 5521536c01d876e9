/**
 * Finding entries: the rules of docs/spec §2.6. Criteria become sorted lists of leaf indexes, or are
 * checked on what the lists leave (`plan.ts`); one list is paged by rank, several are intersected, shortest first. What has to
 * be walked is walked in slices: clients decide how much that is.
 */

import type { Steps } from "../../base/turns.js";
import { hashedTerm, hashTerm } from "../../store/postings/term.js";
import { POSTING } from "../../store/schema/schema.js";
import type { Entry } from "../../verify/tree/entry.js";
import type { CandidatePostings, SearchCondition } from "./candidates.js";
import { READS } from "./costs.js";
import {
  alsoIn,
  arrayList,
  common,
  disjointUnion,
  either,
  type Found,
  foundIn,
  hasRanks,
  type IndexList,
  reach,
  type Walkable,
} from "./index-list.js";
import {
  type EntryCheck,
  type Others,
  type Plan,
  planned,
  searchCondition,
  type TitleSources,
  titleConditions,
} from "./plan.js";
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
  /** Each word of it begins a word of a title or name of the entry (`TITLE_MEMBERS`). */
  readonly title?: string;
  /** The entry names this key in one of the six fields (rule 5). */
  readonly fingerprint?: string;
  /** The entry has this term. */
  readonly term?: string;
  /** Leaf indexes, ascending, that will do instead of `term`. */
  readonly orLeaves?: readonly number[];
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

/** Where a search looks. */
interface Sources extends TitleSources {
  readonly postings: CandidatePostings;
  readonly size: number;
  entry(leafIndex: number): Entry | undefined;
}

/** Entries read between two pauses. */
const READ_STEPS = 64;

/**
 * Matches number `offset` to `offset + limit` of those that `criteria` select, and how many there are in all.
 * @throws CairnlogError `invalid-input` for a search term or a title that matches too much; `indexing`
 */
export function* matching(sources: Sources, criteria: Criteria, offset: number, limit: number): Steps<Matches> {
  const { search, title, within = [{ from: 0, to: sources.size }] } = criteria;
  const stretches = within.map(({ from, to }) => ({ from: Math.min(to, Math.max(from, criteria.from ?? 0)), to }));
  const conditions: SearchCondition[] = [];
  if (search !== undefined) conditions.push(searchCondition(sources.postings, search));
  if (title !== undefined) conditions.push(...titleConditions(sources, title));
  const plan = yield* planned(conditions, othersOf(sources, criteria, stretches), sources.size);
  const lists = new Alternatives(sources, criteria, plan);
  const checked = new Checked(sources, plan.check);
  const page = new Page(offset, limit);
  for (const stretch of stretches) yield* addMatchesIn(stretch, lists, checked, page);
  return page;
}

/** How many entries meet the other criteria, at most. */
function othersOf(sources: Sources, criteria: Criteria, stretches: readonly Stretch[]): Others {
  const alternatives = alternativesOf(sources, criteria);
  const inStretches = stretches.reduce((sum, { from, to }) => sum + to - from, 0);
  const listed = alternatives.reduce((sum, lists) => sum + Math.min(...lists.map(({ length }) => length)), 0);
  return { most: Math.min(inStretches, listed), listCount: Math.max(...alternatives.map((lists) => lists.length)) };
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

/** What the lists leave to be checked. */
class Checked {
  readonly #sources: Sources;
  readonly #check: EntryCheck | null;
  #reads = 0;

  constructor(sources: Sources, check: EntryCheck | null) {
    this.#sources = sources;
    this.#check = check;
  }

  /** Whether the lists alone decide. */
  get isNone(): boolean {
    return !this.#check;
  }

  /**
   * Those of the found, which are in [from, to), that meet it.
   * @throws CairnlogError `invalid-input` if too many entries would have to be read
   */
  *of(found: Found, from: number, to: number): Steps<Found> {
    const check = this.#check;
    if (!check) return found;
    const certain = check.exact ? alsoIn(check.exact(), found, from, to) : foundIn([]);
    if (certain.length === found.length) return found;
    const rest = certain.indexes().values();
    let next = rest.next();
    const matching: number[] = [];
    for (const index of found.indexes()) {
      if (index === next.value) {
        matching.push(index);
        next = rest.next();
        continue;
      }
      if (++this.#reads > READS && check.bounded) throw check.bounded.tooMany();
      if (check.matches(this.#sources.entry(index)!)) matching.push(index);
      if (this.#reads % READ_STEPS === 0) yield;
    }
    return foundIn(matching);
  }
}

/** Adds the matches in one stretch. */
function* addMatchesIn(stretch: Stretch, lists: Alternatives, checked: Checked, page: Page): Steps<void> {
  const { from, to } = stretch;
  const [first, second] = lists.get();
  const [only, ...others] = first!;
  if (checked.isNone && !only) page.add(to - from, (rank, length) => Array.from({ length }, (_, i) => from + rank + i));
  else if (checked.isNone && !others.length && !second && hasRanks(only!)) {
    const start = only.seek(from);
    // One search for the whole page: where each of 50 was looked for by its rank, that was most of what a page cost.
    page.add(only.seek(to) - start, (rank, length) => only.window(only.at(start + rank), length));
  } else yield* walk(stretch, lists, checked, page);
}

/** Adds what the lists of an alternative have in common, or of both together. */
function* walk({ from, to }: Stretch, lists: Alternatives, checked: Checked, page: Page): Steps<void> {
  for (let next = from; next < to; ) {
    const alternatives = lists.get();
    const end = Math.min(...alternatives.map((walked) => reach(walked, next, to, alternatives.length)));
    const [one, other] = alternatives.map((walked) => common(walked, next, end));
    const found = other ? either(one!, other, next, end) : one!;
    const matches = yield* checked.of(found, next, end);
    next = end;
    page.add(matches.length, (rank, length) => matches.indexes(rank, length));
    if (next >= to) return;
    yield;
    lists.drop();
  }
}

/** The lists of the criteria: an entry that all lists of an alternative have is a match. `orTag` or `orLeaves` makes a second one. */
class Alternatives {
  readonly #sources: Sources;
  readonly #criteria: Criteria;
  readonly #plan: Plan;
  #lists: readonly (readonly Walkable[])[] | null = null;

  constructor(sources: Sources, criteria: Criteria, plan: Plan) {
    this.#sources = sources;
    this.#criteria = criteria;
    this.#plan = plan;
  }

  get(): readonly (readonly Walkable[])[] {
    this.#lists ??= alternativesOf(this.#sources, this.#criteria).map((lists) => [...lists, ...this.#plan.lists()]);
    return this.#lists;
  }

  /** After a pause: a list of postings is valid until the next append only, but what was in it stays there. */
  drop(): void {
    this.#lists = null;
  }
}

/** The lists of exact terms, for each alternative. */
function alternativesOf(
  sources: Sources,
  { orTag, orLeaves, ...criteria }: Criteria,
): readonly (readonly IndexList[])[] {
  const first = criteriaLists(sources, criteria);
  if (orLeaves?.length) {
    const { term: _, ...others } = criteria;
    return [first, [...criteriaLists(sources, others), arrayList(orLeaves)]];
  }
  if (orTag === undefined) return [first];
  const tagged = sources.postings.list(hashedTerm(POSTING.tag, orTag.toLowerCase()));
  if (!tagged.length) return [first];
  const { tags: _, ...others } = criteria;
  return [first, [...criteriaLists(sources, others), tagged]];
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
