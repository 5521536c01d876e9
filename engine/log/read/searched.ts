/** The conditions of a search by prefix: docs/spec §2.6, rules 2, 3 and 4. */
import { CairnlogError } from "../../base/error.js";
import { hashTerm } from "../../store/postings/term.js";
import { POSTING } from "../../store/schema/schema.js";
import { membersIn } from "../../verify/events/withheld.js";
import { SEARCH_MEMBERS } from "../../verify/keys/contract.js";
import type { Entry } from "../../verify/tree/entry.js";
import { type CandidatePostings, type Candidates, digits, type SearchCondition, text } from "./candidates.js";
import { REACH } from "./costs.js";

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
  yield text(POSTING.fieldText, term);
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
