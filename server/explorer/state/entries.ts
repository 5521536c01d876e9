/**
 * Stretches of the log. The service lists oldest first, in pages of its own numbering; the explorer shows newest first, so
 * it works out from the total which of the service's pages hold what it wants. A log only grows: an index stays where it is.
 */
import { checkEntry, type Entry, type TreeHead } from "../../../engine/verify/index.js";
import { ClientError, type EntryFilter } from "../../client/index.js";
import { EntryPage } from "../../wire/log.js";
import { raise } from "./alarm.js";
import { client, http } from "./service.js";
import { sight } from "./watching.js";

export type { EntryFilter };

/** The service's maximum. */
const MAX_PER_PAGE = 200;

/** A stretch of a list, newest first, each entry's content checked against its hashes. */
export interface Stretch {
  readonly entries: readonly Entry[];
  /** Entries that the whole list has, as the service tells it. */
  readonly total: number;
}

/** The entries of leaves `[from, to)`, proven to be those of the tree of `head`. @throws ClientError `log-misbehaved` */
export async function provenEntries(head: TreeHead, from: number, to: number): Promise<Entry[]> {
  const entries = await listed("/log", {}, from, to);
  for (const [i, entry] of entries.entries()) {
    const previous = entries[i - 1];
    if (previous && (entry.previous_hash !== previous.entry_hash || entry.id <= previous.id))
      throw caught(`Entry ${entry.id} does not follow on the one before it.`, entry);
  }
  const last = entries.at(-1);
  // Each hash covers the one before it, so the last one's place in the tree is that of all.
  const proof = await client.log.proof(to - 1, head.tree_size);
  if (entries.length !== to - from || !last || proof.entry_hash !== last.entry_hash)
    throw caught("The entries that the service lists are not those of the tree.", last ?? null);
  return entries.reverse();
}

/**
 * The entries before and after one that was proven, where there are any; their content is checked, and that the hashes of the
 * three follow on one another. Ids of an imported history may have gaps, so they do not follow from the entry's own.
 * @throws ClientError `log-misbehaved`
 */
export async function neighbours(
  entry: Entry,
  leafIndex: number,
): Promise<{ readonly previous: Entry | null; readonly next: Entry | null }> {
  const from = Math.max(0, leafIndex - 1);
  const around = await listed("/log", {}, from, leafIndex + 2);
  const [listedEntry, next = null] = around.slice(leafIndex - from);
  const previous = leafIndex > 0 ? around[0]! : null;
  if (listedEntry?.entry_hash !== entry.entry_hash)
    throw caught(`The service lists another entry ${entry.id} than it shows.`, entry);
  if ((previous?.entry_hash ?? null) !== entry.previous_hash)
    throw caught(`Entry ${entry.id} does not follow on the one before it.`, entry);
  if (next && next.previous_hash !== entry.entry_hash)
    throw caught(`Entry ${next.id} does not follow on the one before it.`, next);
  return { previous, next };
}

/** The same of those entries of a list that match; that none is missing, nothing shows. @throws ClientError */
export async function matchingEntries(
  { path, filter }: List,
  { skip, count, total: known }: { readonly skip: number; readonly count: number; readonly total?: number },
): Promise<Stretch> {
  const total = known ?? (await http.get(EntryPage, path, { ...filter, page: 1, per_page: 1 })).total;
  const to = Math.max(0, total - skip);
  const from = Math.max(0, to - count);
  const entries = to > from ? await listed(path, filter, from, to) : [];
  return { entries: entries.reverse(), total };
}

/** A list of entries: `/log`, or `/log/by-fingerprint/…`. */
export interface List {
  readonly path: string;
  readonly filter: EntryFilter;
}

/** Entries `[from, to)` of a list, oldest first. One request wherever some page size has them all on one page. */
async function listed(path: string, filter: EntryFilter, from: number, to: number): Promise<Entry[]> {
  const page = pageAround(from, to);
  if (!page) {
    const middle = Math.floor((from + to) / 2);
    const [older, newer] = await Promise.all([listed(path, filter, from, middle), listed(path, filter, middle, to)]);
    return [...older, ...newer];
  }
  const { number, size } = page;
  const answer = await http.get(EntryPage, path, { ...filter, page: number, per_page: size });
  const entries = (answer.entries as Entry[]).slice(from % size, (from % size) + to - from);
  for (const entry of entries) {
    const [problem] = checkEntry(entry);
    if (problem) throw caught(`Entry ${entry.id}: ${problem.message}`, entry);
  }
  return entries;
}

/** The smallest pages of which one holds all of `[from, to)`. */
function pageAround(from: number, to: number): { readonly number: number; readonly size: number } | undefined {
  for (let size = to - from; size <= MAX_PER_PAGE; size++)
    if (Math.floor(from / size) === Math.floor((to - 1) / size)) return { number: Math.floor(from / size) + 1, size };
  return undefined;
}

/** Raises the alarm, since the client has not seen this. */
function caught(detail: string, entry: Entry | null): ClientError {
  const known = sight.value.status === "proven" ? sight.value.head : null;
  void client.log.operatorKey().then(({ pem: operatorKey }) => {
    raise(detail, { operatorKey, known, shown: null, proof: null, entry });
  });
  return new ClientError("log-misbehaved", detail);
}
