/**
 * The directory of keys: every key in order of registration, and search by a part of the pseudonym. Postings give the
 * entries and the entries give the rows, so no table is scanned, and a page costs only what it shows.
 */

import { turn } from "../../base/turns.js";
import type { PageQuery } from "../../contract/common.js";
import type { Value } from "../../contract/types.js";
import type { Log } from "../../log/log.js";
import type { PostingList } from "../../store/postings/lists.js";
import { textPrefixTerm } from "../../store/postings/term.js";
import type { KeyRow } from "../../store/schema/rows.js";
import { POSTING } from "../../store/schema/schema.js";
import { DEFAULT_PER_PAGE, MAX_PER_PAGE } from "../../verify/keys/contract.js";
import { foldPseudonym, isFingerprint, readPseudonym } from "../events/keys.js";
import { KEY_CREATED_TERM } from "../events/projection.js";
import { Faults, invalidInput } from "../shared/input.js";

/** Maximum length of a text that is a gram itself. */
const GRAM_CHARACTERS = 3;
/** Number of candidates between two pauses, which takes a few milliseconds. */
const SLICE = 256;
/** Number of candidates that one search reads, the oldest: anybody may give a key any name. */
const MAX_CANDIDATES = 10_000;

/**
 * Rows that may come before a page of a table: skipping them takes 0.1 to 0.2 µs each, in one go, and others decide how many
 * there are.
 */
const REACH = 100_000;

/** Pages count from 1. */
export type PageRequest = Partial<Value<typeof PageQuery>>;

/** One page of key rows. */
export interface RowPage {
  readonly rows: readonly KeyRow[];
  readonly page: number;
  readonly per_page: number;
  readonly total: number;
  /** Present if more keys may have such a name than one search reads. Then `total` counts those that were found. */
  readonly truncated?: true;
}

/** Keys in order of registration. @throws CairnlogError `invalid-input` for a page below 1 or not 1 to 200 a page */
export function listKeys(log: Log, paging: PageRequest): RowPage {
  return exactPage(log, log.postings(KEY_CREATED_TERM), readPaging(paging));
}

/**
 * Keys whose pseudonym contains `text`, ignoring case, in order of registration. A text of up to three characters is a
 * term itself. For a longer text, the entries of its rarest part are checked one by one, the oldest ones of very many.
 * Other work runs in between.
 * @throws CairnlogError `invalid-input` for a text that no pseudonym can contain, and as `listKeys` does
 */
export async function searchKeys(log: Log, text: unknown, paging: PageRequest): Promise<RowPage> {
  const { page, per_page } = readPaging(paging);
  const faults = new Faults();
  const needle = foldPseudonym(readPseudonym(text, "/pseudonym", faults) ?? "");
  faults.check();
  const characters = [...needle];
  if (characters.length <= GRAM_CHARACTERS)
    return exactPage(log, log.postings(textPrefixTerm(POSTING.pseudonymGram, needle)), { page, per_page });

  const lists = characters.slice(GRAM_CHARACTERS - 1).map((_, i) => {
    const term = textPrefixTerm(POSTING.pseudonymGram, characters.slice(i, i + GRAM_CHARACTERS).join(""));
    return { term, length: log.postings(term).length };
  });
  const { term } = lists.reduce((rarest, list) => (list.length < rarest.length ? list : rarest));
  const start = (page - 1) * per_page;
  const rows: KeyRow[] = [];
  let total = 0;
  for (let from = 0; ; from += SLICE) {
    // Read again after every pause: a list is valid only until the next append, but its beginning never changes.
    const candidates = log.postings(term);
    const to = Math.min(candidates.length, from + SLICE, MAX_CANDIDATES);
    for (let rank = from; rank < to; rank++) {
      const row = createdRow(log, candidates.at(rank));
      if (!row || !foldPseudonym(row.pseudonym).includes(needle)) continue;
      if (total >= start && rows.length < per_page) rows.push(row);
      total++;
    }
    const found = { rows, page, per_page, total };
    if (to === candidates.length) return found;
    if (to === MAX_CANDIDATES) return { ...found, truncated: true };
    await turn();
  }
}

/**
 * A page of a list whose every item is a result. Imported history may contain events that claim to create a key but did
 * not. Such an event counts in `total` and leaves a gap in its page.
 */
function exactPage(log: Log, list: PostingList, { page, per_page }: Required<PageRequest>): RowPage {
  const rows: KeyRow[] = [];
  const start = (page - 1) * per_page;
  for (let rank = start; rank < Math.min(list.length, start + per_page); rank++) {
    const row = createdRow(log, list.at(rank));
    if (row) rows.push(row);
  }
  return { rows, page, per_page, total: list.length };
}

/** The row of the key that the entry at `leafIndex` created. */
function createdRow(log: Log, leafIndex: number): KeyRow | undefined {
  const entry = log.entryAt(leafIndex);
  const fingerprint = entry?.payload?.fingerprint;
  const row = isFingerprint(fingerprint) ? log.row("keys", fingerprint) : undefined;
  return row?.log_entry_id === entry?.id ? row : undefined;
}

/** @throws CairnlogError `invalid-input` for a page below 1 or not 1 to 200 a page */
export function readPaging({ page = 1, per_page = DEFAULT_PER_PAGE }: PageRequest): Required<PageRequest> {
  if (!Number.isSafeInteger(page) || page < 1)
    throw invalidInput("/page", "The page must be an integer of at least 1.");
  if (!Number.isSafeInteger(per_page) || per_page < 1 || per_page > MAX_PER_PAGE)
    throw invalidInput("/per_page", `There can be 1 to ${MAX_PER_PAGE} to a page.`);
  return { page, per_page };
}

/**
 * How many of `total` rows of a table come before a page; null if all do.
 * @param advice a sentence that says how to reach further ones
 * @throws CairnlogError `invalid-input` if they are more than `REACH`
 */
export function skippedBefore({ page, per_page }: Required<PageRequest>, total: number, advice: string): number | null {
  const skipped = (page - 1) * per_page;
  if (skipped >= total) return null;
  if (skipped > REACH) throw invalidInput("/page", `Only the first ${REACH} of this list have pages. ${advice}`);
  return skipped;
}
