/**
 * The order of work of a search. What the fewest entries have is walked first. A condition that many more have is checked
 * on the entries that are left, and one that too many have is refused before anything is read.
 */
import type { Steps } from "../../base/turns.js";
import type { Entry } from "../../verify/tree/entry.js";
import { gathered, listed, type SearchCondition, type Weighed, weigh } from "./candidates.js";
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
      if (isListed) made.push(() => listed(one));
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
  for (const one of gathering) kept.push(yield* gathered(one, size));
  return {
    lists: () => [...kept, ...made.map((make) => make())],
    check: checked.length ? { matches: (entry) => checked.every((one) => one.matches(entry)), bounded, exact } : null,
  };
}
