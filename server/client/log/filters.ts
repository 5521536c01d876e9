/**
 * Checks whether a listed entry matches the requested filter. Nothing proves that a list is complete. But each entry
 * shows whether it belongs in the list.
 */

import { matchesTitle } from "../../../engine/verify/events/titles.js";
import { membersIn } from "../../../engine/verify/events/withheld.js";
import { type Entry, kindOf, requestedTime } from "../../../engine/verify/index.js";
import {
  AUDIT_SCOPES,
  type AuditScope,
  FINGERPRINT_MEMBERS,
  SEARCH_MEMBERS,
} from "../../../engine/verify/keys/contract.js";
import { asLogged } from "../base/compare.js";

/** The filters of all lists of entries, as they are sent. */
export interface EntryCriteria {
  readonly event_type?: string | undefined;
  readonly tags?: string | undefined;
  readonly search?: string | undefined;
  readonly title?: string | undefined;
  readonly fingerprint?: string | undefined;
  readonly document_hash?: string | undefined;
  readonly start_date?: string | undefined;
  readonly end_date?: string | undefined;
  readonly scope?: "all" | AuditScope | undefined;
  readonly after_id?: number | undefined;
}

const DATE = /^\d{4}-\d\d-\d\d$/;
const PREFIX = "sha256:";

/**
 * The name of a filter that an entry does not match; undefined if it matches all. One without its payload shows no member of it
 * (it may have been withheld while a list was read), so it is held against what it shows.
 */
export function failedFilter(entry: Entry, criteria: EntryCriteria): string | undefined {
  const checks: Partial<Record<string, (entry: Entry, value: never) => boolean>> = {
    ...OF_ENTRY,
    ...(entry.payload && OF_PAYLOAD),
  };
  return (Object.keys(checks) as (keyof EntryCriteria)[]).find(
    (name) => criteria[name] !== undefined && !checks[name]!(entry, criteria[name] as never),
  );
}

const OF_ENTRY = {
  // A comma separates names, or belongs to a single one.
  event_type: ({ event_type }: Entry, types: string) => [types, ...types.split(",")].includes(event_type),
  start_date: ({ timestamp }: Entry, start: string) => isInOrder(start, timestamp, "T00:00:00Z"),
  end_date: ({ timestamp }: Entry, end: string) => isInOrder(timestamp, end, "T23:59:59.999999Z"),
  scope: ({ event_type }: Entry, scope: string) =>
    !AUDIT_SCOPES.some((name) => name === scope) || kindOf(event_type)?.scope === scope,
  after_id: ({ id }: Entry, after: number) => id > after,
};

const OF_PAYLOAD: Readonly<
  Record<Exclude<keyof EntryCriteria, keyof typeof OF_ENTRY>, (entry: Entry, value: string) => boolean>
> = {
  tags: (entry, wanted) => {
    const { tags } = membersIn(entry);
    const folded = wanted.toLowerCase();
    const has = (name: string) => Array.isArray(tags) && tags.some((tag) => `${tag}`.toLowerCase() === name);
    return has(folded) || folded.split(",").every((name) => !name || has(name));
  },
  search: (entry, term) => {
    const folded = term.toLowerCase();
    return [...entry.entry_hashes.map(({ digest_hex }) => digest_hex), ...texts(entry, SEARCH_MEMBERS)].some(
      (value) => value.startsWith(folded) || bare(value).startsWith(bare(folded)),
    );
  },
  title: (entry, title) => matchesTitle(membersIn(entry), title),
  fingerprint: (entry, fingerprint) =>
    texts(entry, FINGERPRINT_MEMBERS).some((value) => asLogged(value) === asLogged(fingerprint).toLowerCase()),
  document_hash: (entry, hash) =>
    texts(entry, ["document_hash"]).some((value) => bare(value) === bare(hash.toLowerCase())),
};

const bare = (hash: string): string => (hash.startsWith(PREFIX) ? hash.slice(PREFIX.length) : hash);

/** The values of the given members that are texts, in lower case. */
function texts(entry: Entry, members: readonly string[]): string[] {
  const payload = membersIn(entry);
  return members.flatMap((name) => {
    const value = payload[name];
    return typeof value === "string" ? [value.toLowerCase()] : [];
  });
}

/**
 * Whether one moment is not after another. A date stands for the given time of that day. Timestamps of version 1 may
 * not be valid moments.
 */
function isInOrder(earlier: string, later: string, momentOfDay: string): boolean {
  const [from, to] = [earlier, later].map((time) => requestedTime(DATE.test(time) ? time + momentOfDay : time));
  return from === undefined || to === undefined || from <= to;
}
