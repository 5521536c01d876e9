/**
 * Pages of entries: found in slices where much has to be walked, and sent in pieces where they are large. Whoever asks
 * decides how much both is, and everybody else waits on the same thread.
 */
import type { Log } from "../../../../engine/log/log.js";
import type { Criteria, Matches } from "../../../../engine/log/read/query.js";
import type { Slices } from "../../../../engine/registry/slices.js";
import { type Answer, jsonList } from "../../transport/answer.js";

/** What finding entries takes. */
export interface Finder {
  readonly log: Log;
  /** Runs long queries side by side. */
  readonly queries: Slices;
}

interface Paging {
  readonly page: number;
  readonly per_page: number;
}

/** Leaf indexes of a page; at once, unless it takes more than a slice to find them. */
export function findMatches({ log, queries }: Finder, criteria: Criteria, paging: Paging): Matches | Promise<Matches> {
  const work = log.matching(criteria, (paging.page - 1) * paging.per_page, paging.per_page);
  const { done, value } = work.next();
  return done ? value : queries.run(work);
}

/** A page of entries as they are served. */
export function entryPage(finder: Finder, { page, per_page }: Paging, criteria: Criteria): Answer | Promise<Answer> {
  const answer = ({ indexes, total }: Matches) => {
    const rest = { page, per_page, total };
    return jsonList("entries", indexes.length, (i) => finder.log.entryJsonAt(indexes[i]!)!, rest);
  };
  const found = findMatches(finder, criteria, { page, per_page });
  return found instanceof Promise ? found.then(answer) : answer(found);
}
