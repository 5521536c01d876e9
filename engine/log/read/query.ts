/**
 * Finds entries: `spec.md`, filter and search rules 1 to 5. Every criterion becomes a sorted list of leaf indexes. One
 * list is paged by rank; several are intersected, shortest first.
 */

import type { Postings } from "../../store/postings/postings.js";
import { hashedTerm, hashTerm, hexPrefixTerm, textPrefixTerm } from "../../store/postings/term.js";
import { POSTING, type PostingKind } from "../../store/schema.js";
import { SEARCH_MEMBERS } from "../../verify/contract.js";
import type { Entry } from "../../verify/entry.js";
import { arrayList, disjointUnion, type IndexList, intersection } from "./index-list.js";
import type { Stretch } from "./seams.js";

/** An entry must meet every criterion that is given. */
export interface Criteria {
  /** The event type is one of these. */
  readonly eventTypes?: readonly string[];
  /** The entry carries all of these tags (rule 1). */
  readonly tags?: readonly string[];
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
const PREFIX = "sha256:";

/** Matches number `offset` to `offset + limit` of the entries that `criteria` select, and the number of all matches. */
export function findMatches(sources: Sources, criteria: Criteria, offset: number, limit: number): Matches {
  const lists = criteriaLists(sources, criteria);
  let total = 0;
  const indexes: number[] = [];
  for (const { from, to } of criteria.within ?? [{ from: 0, to: sources.size }]) {
    const { count, page } = matchesIn({ from: Math.min(to, Math.max(from, criteria.from ?? 0)), to }, lists);
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

function matchesIn({ from, to }: Stretch, lists: readonly IndexList[]): StretchMatches {
  const [only] = lists;
  if (!only) return { count: to - from, page: (rank, length) => Array.from({ length }, (_, i) => from + rank + i) };
  if (lists.length === 1) {
    const first = only.seek(from);
    // One search for the whole page: searching each of 50 indexes by its rank took most of the time of a page.
    return { count: only.seek(to) - first, page: (rank, length) => only.window(only.at(first + rank), length) };
  }
  const indexes = [...intersection(lists, from, to)];
  return { count: indexes.length, page: (rank, length) => indexes.slice(rank, rank + length) };
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
  if (criteria.search !== undefined) lists.push(searchList(sources, criteria.search.toLowerCase()));
  return lists;
}

/** Entries that match a folded search term, sorted, each once. The cost depends on the number of matches. */
function searchList(sources: Sources, term: string): IndexList {
  const found = new Set<number>();
  for (const { index, certain } of candidates(sources, term))
    if (!found.has(index) && (certain || matchesSearch(sources.entry(index)!, term))) found.add(index);
  return arrayList([...found].sort((a, b) => a - b));
}

/** Every entry that may match; `certain` if the 16 bytes of a term are enough to decide. */
function* candidates({ postings }: Sources, term: string): Iterable<{ index: number; certain: boolean }> {
  const hexRange = function* (kind: PostingKind, hex: string) {
    const certain = hex.length <= KEY_HEX;
    const high = hexPrefixTerm(kind, hex.slice(0, KEY_HEX).padEnd(KEY_HEX, "f"));
    for (const index of postings.range(hexPrefixTerm(kind, hex), high)) yield { index, certain };
  };
  const complete = COMPLETE_HASH.exec(term)?.[1];
  if (HEX.test(term)) yield* hexRange(POSTING.digest, term);
  if (complete) {
    yield* hexRange(POSTING.bareHash, complete);
    yield* hexRange(POSTING.prefixedHash, complete);
    return;
  }
  if (HEX.test(term)) yield* hexRange(POSTING.bareHash, term);
  if (term.startsWith(PREFIX) || PREFIX.startsWith(term)) {
    const hex = term.slice(PREFIX.length);
    if (hex === "" || HEX.test(hex)) yield* hexRange(POSTING.prefixedHash, hex);
  }
  const low = textPrefixTerm(POSTING.fieldText, term);
  const bytes = Buffer.byteLength(term, "utf8");
  const high = low.slice(0, 1 + Math.min(bytes, KEY_BYTES)).padEnd(1 + KEY_BYTES, "\xff");
  // Shorter values are filled with NULs, so a term that contains a NUL is not certain.
  const certain = bytes <= KEY_BYTES && !term.includes("\0");
  for (const index of postings.range(low, high)) yield { index, certain };
}

/** The search rules, applied to one entry; `term` is folded. */
export function matchesSearch(entry: Entry, term: string): boolean {
  if (entry.entry_hashes.some(({ digest_hex }) => digest_hex.toLowerCase().startsWith(term))) return true;
  const values = SEARCH_MEMBERS.map((field) => entry.payload[field])
    .filter((value) => typeof value === "string")
    .map((value) => value.toLowerCase());
  const complete = COMPLETE_HASH.exec(term)?.[1];
  return complete
    ? values.some((value) => value === complete || value === PREFIX + complete)
    : values.some((value) => value.startsWith(term));
}
