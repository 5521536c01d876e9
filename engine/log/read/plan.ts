/**
 * The order of work of a search. What the fewest entries have is walked first. A condition that many more have is checked
 * on the entries that are left, and one that too many have is refused before anything is read.
 */

import { CairnlogError } from "../../base/error.js";
import type { Steps } from "../../base/turns.js";
import { hashTerm } from "../../store/postings/term.js";
import { POSTING } from "../../store/schema/schema.js";
import { foldedAsBefore, hasTitleWords, soughtWords } from "../../verify/events/titles.js";
import { membersIn } from "../../verify/events/withheld.js";
import { SEARCH_MEMBERS } from "../../verify/keys/contract.js";
import type { Entry } from "../../verify/tree/entry.js";
import {
  beginningWith,
  type CandidatePostings,
  type Candidates,
  candidateEntries,
  digits,
  gathered,
  type SearchCondition,
  type Weighed,
  weigh,
} from "./candidates.js";
import { GATHERED_IN_ALL, REACH, READS } from "./costs.js";
import type { IndexList, Walkable } from "./index-list.js";

/** A condition is gathered if it has at most so many postings for each entry to read: reading an entry costs as much as 64. */
const GATHERED = 64;

export interface Plan {
  /** Lists of what may match, made again after each pause. All matches are in all of them. */
  lists(): readonly Walkable[];
  /** What is to be checked on the entries that all lists have; null if nothing. */
  readonly check: EntryCheck | null;
}

export interface EntryCheck {
  matches(entry: Entry): boolean;
  /** A condition for which not more than `READS` entries are read; undefined if all are. */
  readonly bounded: SearchCondition | undefined;
  /** Entries that meet it for certain, made again after each pause; undefined if none is known to. */
  readonly exact: (() => IndexList) | undefined;
}

/** The other criteria of a search. */
export interface Others {
  /** At most so many entries meet them. */
  readonly most: number;
  /** How many lists they make. */
  readonly listCount: number;
}

/** @throws CairnlogError `invalid-input` if too many entries match, or would have to be read */
export function* planned(conditions: readonly SearchCondition[], others: Others, size: number): Steps<Plan> {
  const weighed = conditions.map(weigh).sort((a, b) => a.count - b.count);
  const shortest = Math.min(others.most, weighed[0]?.count ?? Number.POSITIVE_INFINITY);
  const made: (() => Walkable)[] = [];
  const gathering: Weighed[] = [];
  const checked: SearchCondition[] = [];
  for (const one of weighed) {
    const { condition, count, isListed, isCertain } = one;
    const { exact } = condition;
    const most = Math.min(
      REACH,
      shortest * GATHERED,
      GATHERED_IN_ALL - gathering.reduce((sum, it) => sum + it.count, 0),
    );
    const isGathered = !isListed && count <= most;
    if (exact?.().length === count) made.push(exact);
    else {
      if (isListed) made.push(() => candidateEntries(one));
      else if (isGathered) gathering.push(one);
      if ((!isListed && !isGathered) || !isCertain) checked.push(condition);
    }
  }
  const bounded = checked.find(({ isServedWhole }) => !isServedWhole);
  // All entries of a single list would be read. Several lists may have few in common.
  const lists = made.length + gathering.length;
  const read = lists ? shortest : others.most;
  if (bounded && lists + others.listCount <= 1 && read > READS) throw bounded.tooMany();
  const exact = checked.length === 1 ? checked[0]!.exact : undefined;
  const kept: IndexList[] = [];
  for (const [i, one] of gathering.entries()) {
    if (i) yield;
    kept.push(gathered(one, size));
  }
  return {
    lists: () => [...kept, ...made.map((make) => make())],
    check: checked.length ? { matches: (entry) => checked.every((one) => one.matches(entry)), bounded, exact } : null,
  };
}

export interface TitleSources {
  /** Postings that hold words of titles. @throws CairnlogError `indexing` */
  titles(): readonly CandidatePostings[];
  /** Whether some titles are filed only as an older version folded their words. They are found as that version found them. */
  readonly hasEarlierTitles?: boolean;
}

/**
 * What an entry must have to match `title`: a condition for each word.
 * @throws CairnlogError `invalid-input` for a text without a word
 */
export function titleConditions(sources: TitleSources, title: string): SearchCondition[] {
  const words = soughtWords(title);
  if (!words.length) throw refused("It must have a letter or a digit.");
  const earlier = sources.hasEarlierTitles ? soughtWords(title, foldedAsBefore) : [];
  // What is one word now may have been several words before. One of those alone would find too much.
  const isSame = earlier.length === words.length;
  return words.map((word, i) => {
    const before = earlier[i];
    return {
      ranges: [
        beginningWith(POSTING.titleWord, word),
        ...(before === undefined
          ? []
          : [{ ...beginningWith(POSTING.earlierTitleWord, before), ...(isSame ? {} : UNCERTAIN) }]),
      ],
      postings: () => sources.titles(),
      matches: (entry) =>
        hasTitleWords(membersIn(entry), [word]) ||
        (before !== undefined && isSame && hasTitleWords(membersIn(entry), [before], foldedAsBefore)),
      tooMany: () => refused("Too many titles match. Give more of it."),
      isServedWhole: false,
    };
  });
}

const UNCERTAIN = { certain: false };

function refused(message: string): CairnlogError {
  return new CairnlogError("invalid-input", `/title: ${message}`, { details: [{ path: "/title", message }] });
}

const HEX = /^[0-9a-f]+$/;
const COMPLETE_HASH = /^(?:sha256:)?((?:[0-9a-f]{64}|[0-9a-f]{128}))$/;
const PREFIX = "sha256:";
/** Digits that a prefix search behind `sha256:` needs: with fewer it would walk through most of the log. */
const LEAST_DIGITS = 4;

/**
 * What an entry must have to match `search`.
 * @throws CairnlogError `invalid-input` for a text with which nearly every entry has a hash
 */
export function searchCondition(postings: CandidatePostings, search: string): SearchCondition {
  const term = search.toLowerCase();
  checkReach(term);
  const complete = COMPLETE_HASH.exec(term)?.[1];
  return {
    ranges: [...candidates(term, complete)],
    postings: () => [postings],
    matches: (entry) => matchesSearch(entry, term, complete),
    tooMany: () => tooWide(`More than ${REACH} matches would have to be looked at. Give more of it.`),
    isServedWhole: complete !== undefined,
    ...(complete === undefined ? {} : { exact: () => postings.list(hashTerm(POSTING.document, complete)) }),
  };
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
function* candidates(term: string, complete: string | undefined): Iterable<Candidates> {
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
  yield beginningWith(POSTING.fieldText, term);
}

/** The search rules, applied to one entry; `term` is folded. */
function matchesSearch(entry: Entry, term: string, complete: string | undefined): boolean {
  if (entry.entry_hashes.some(({ digest_hex }) => digest_hex.toLowerCase().startsWith(term))) return true;
  const values = SEARCH_MEMBERS.map((field) => membersIn(entry)[field])
    .filter((value) => typeof value === "string")
    .map((value) => value.toLowerCase());
  return complete
    ? values.some((value) => value === complete || value === PREFIX + complete)
    : values.some((value) => value.startsWith(term));
}
