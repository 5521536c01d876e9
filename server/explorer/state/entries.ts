/**
 * Stretches of the log. The service lists oldest first, in pages of its own numbering; the explorer shows newest first, so
 * it works out from the total which of the service's pages hold what it wants. A log only grows: an index stays where it is.
 */
import { checkServiceEntry, type Entry, type TreeHead } from "../../../engine/verify/index.js";
import { ClientError, type EntryFilter, type Evidence, type ProvenEntry } from "../../client/index.js";
import { EntryPage } from "../../wire/log/log.js";
import { store } from "./memory.js";
import { client, http } from "./service.js";

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
      throw await caught(doesNotFollow(entry), await foreignOf(head, from + i, previous, entry));
  }
  // Each hash covers the one before it, so the last one's place in the tree is that of all.
  const last = entries.at(-1);
  const proof = await client.log.proof(to - 1, head.tree_size);
  const parts = { shown: head, proof, entry: last ?? null };
  if (entries.length !== to - from || !last)
    throw await caught("The service lists fewer entries than the signed tree has leaves.", parts);
  if (proof.entry_hash !== last.entry_hash)
    throw await caught("The entries that the service lists are not those of the tree.", parts);
  return entries.reverse();
}

/**
 * The entries before and after one that was proven, where there are any; their content is checked, and that the hashes of the
 * three follow on one another. Ids of an imported history may have gaps, so they do not follow from the entry's own.
 * @throws ClientError `log-misbehaved`
 */
export async function neighbours({
  entry,
  proof,
  head,
}: ProvenEntry): Promise<{ readonly previous: Entry | null; readonly next: Entry | null }> {
  const { leaf_index: leafIndex } = proof;
  const from = Math.max(0, leafIndex - 1);
  const around = await listed("/log", {}, from, leafIndex + 2);
  const [listedEntry, next = null] = around.slice(leafIndex - from);
  const previous = leafIndex > 0 ? around[0]! : null;
  if (listedEntry?.entry_hash !== entry.entry_hash)
    throw await caught(`The service lists another entry ${entry.id} than it shows.`, {
      shown: head,
      proof,
      entry: listedEntry ?? null,
    });
  if ((previous?.entry_hash ?? null) !== entry.previous_hash)
    throw await caught(doesNotFollow(entry), await against(head, leafIndex - 1, previous));
  if (next && next.previous_hash !== entry.entry_hash)
    throw await caught(doesNotFollow(next), await against(head, leafIndex + 1, next));
  return { previous, next };
}

/**
 * Entry `id`, proven. Where the service denies it, the list is asked too: ids ascend from 1, so in a log without gaps the
 * entry would be leaf `id - 1`; behind a gap it lies before that, and the service's word has to do.
 * @throws ClientError `not-found`; `log-misbehaved`
 */
export async function provenEntry(id: number): Promise<ProvenEntry> {
  try {
    return await client.log.entry(id);
  } catch (error) {
    if (!isDenial(error)) throw error;
    const head = await client.log.head();
    if (!head || id > head.tree_size) throw error;
    const [there] = await provenEntries(head, id - 1, id);
    if (there!.id !== id) throw error;
    try {
      // It may have been recorded since.
      return await client.log.entry(id);
    } catch (again) {
      if (!isDenial(again)) throw again;
      throw await caught(`The service denies entry ${id}, which lies in its log.`, await against(head, id - 1, there!));
    }
  }
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
    const [problem] = checkServiceEntry(entry);
    if (problem) throw await caught(`Entry ${entry.id}: ${problem.message}`, { entry });
  }
  return entries;
}

/** The smallest pages of which one holds all of `[from, to)`. */
function pageAround(from: number, to: number): { readonly number: number; readonly size: number } | undefined {
  for (let size = to - from; size <= MAX_PER_PAGE; size++)
    if (Math.floor(from / size) === Math.floor((to - 1) / size)) return { number: Math.floor(from / size) + 1, size };
  return undefined;
}

const isDenial = (error: unknown): boolean => error instanceof ClientError && error.status === 404;

const doesNotFollow = ({ id }: Entry): string => `Entry ${id} does not follow on the one before it.`;

/** Which of two listed entries, said to be leaves `leafIndex - 1` and `leafIndex`, is not that leaf. */
async function foreignOf(head: TreeHead, leafIndex: number, previous: Entry, entry: Entry): Promise<Partial<Evidence>> {
  const before = await against(head, leafIndex - 1, previous);
  const isForeign = before.proof !== null && before.proof.entry_hash !== previous.entry_hash;
  return isForeign ? before : against(head, leafIndex, entry);
}

/** What `entry` is to be held against: the proof of the leaf that it is said to be. A service that gives none is no less caught. */
async function against(head: TreeHead, leafIndex: number, entry: Entry | null) {
  const proof = await client.log.proof(leafIndex, head.tree_size).catch(() => null);
  return { shown: head, proof, entry };
}

/** The error that raises the alarm where it is shown (`useTask`): the client has not seen this. */
async function caught(detail: string, parts: Partial<Evidence>): Promise<ClientError> {
  const [{ pem: operatorKey }, state] = await Promise.all([client.log.operatorKey(), store.load()]);
  const known = (state?.head ?? null) as TreeHead | null;
  const evidence = { operatorKey, known, shown: null, proof: null, entry: null, ...parts };
  return new ClientError("log-misbehaved", detail, { evidence });
}
