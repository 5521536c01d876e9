/**
 * Reads parts of the log. The service lists the oldest entries first, in its own pages; the explorer shows the newest
 * first. So it computes from the total which pages of the service contain the wanted entries. A log only grows, so an
 * index is stable.
 */
import { EntryPage } from "../../../engine/contract/log/log.js";
import { canonicalJson, checkServiceEntry, type Entry, type TreeHead } from "../../../engine/verify/index.js";
import { MAX_PER_PAGE } from "../../../engine/verify/keys/contract.js";
import { ClientError, type EntryFilter, type Evidence, type ProvenEntry } from "../../client/index.js";
import { learnNames } from "./names.js";
import { client, http, store } from "./service.js";
import type { EntrySlice } from "./source.js";
import { firstHead } from "./watching.js";

/** The entries of leaves `[from, to)`, verified to be in the tree of `head`. @throws ClientError `log-misbehaved` */
export async function provenEntries(head: TreeHead, from: number, to: number): Promise<Entry[]> {
  const entries = await listed("/log", {}, from, to);
  for (const [i, entry] of entries.entries()) {
    const previous = entries[i - 1];
    if (previous && (entry.previous_hash !== previous.entry_hash || entry.id <= previous.id))
      throw await caught(doesNotFollow(entry), await foreignOf(head, from + i, previous, entry));
  }
  // Each hash covers the one before it: if the last entry is in the tree, all of them are.
  const last = entries.at(-1);
  const proof = await client.log.proof(to - 1, head.tree_size);
  const parts = { shown: head, proof, entry: last ?? null };
  if (entries.length !== to - from || !last)
    throw await caught("The service lists fewer entries than the signed tree has leaves.", parts);
  if (proof.entry_hash !== last.entry_hash)
    throw await caught("The entries that the service lists are not in the signed tree.", parts);
  return entries.reverse();
}

/**
 * The entries before and after a verified entry, if they exist. Their content is checked, and that the hashes of the
 * three entries form a chain. Ids of an imported history may have gaps, so the neighbours' ids cannot be computed.
 * @throws ClientError `log-misbehaved`
 */
export async function neighbours({
  entry,
  proof,
  head,
}: ProvenEntry): Promise<{ readonly previous: Entry | null; readonly next: Entry | null }> {
  const { leaf_index: leafIndex } = proof;
  const from = Math.max(0, leafIndex - 1);
  const around = await leaves(from, Math.min(leafIndex + 2, head.tree_size), head.tree_size);
  const [listedEntry, next = null] = around.slice(leafIndex - from);
  const previous = leafIndex > 0 ? around[0]! : null;
  if (listedEntry?.entry_hash !== entry.entry_hash)
    throw await caught(`The service lists an entry ${entry.id} that differs from the one that it shows.`, {
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
 * Entry `id`, verified. If the service denies it, the list is read too. Ids ascend from 1, so in a log without gaps the
 * entry would be leaf `id - 1`. Behind a gap it is at an earlier leaf, and the denial cannot be checked.
 * @throws ClientError `not-found`; `log-misbehaved`
 */
export async function provenEntry(id: number): Promise<ProvenEntry> {
  const head = await firstHead();
  return (head && (await entryAtItsLeaf(id, head))) ?? entryById(id);
}

/**
 * Entry `id`, verified, if it is leaf `id - 1` of the tree of a verified head. The neighbours are read with it and kept, so
 * a reader who goes from one entry to the next makes one request for each, that of its proof.
 */
async function entryAtItsLeaf(id: number, head: TreeHead): Promise<ProvenEntry | undefined> {
  if (id > head.tree_size) return undefined;
  const [entry] = await leaves(id - 1, id, head.tree_size);
  if (entry?.id !== id) return undefined;
  const proof = await client.log.proof(id - 1, head.tree_size);
  if (proof.entry_hash !== entry.entry_hash)
    throw await caught(`Entry ${id}, as the service lists it, is not in the signed tree.`, {
      shown: head,
      proof,
      entry,
    });
  return { entry, proof, head };
}

/** The same by its id alone. */
async function entryById(id: number): Promise<ProvenEntry> {
  try {
    return await client.log.entry(id);
  } catch (error) {
    if (!isDenial(error)) throw error;
    const head = await client.log.head();
    if (!head || id > head.tree_size) throw error;
    const [there] = await provenEntries(head, id - 1, id);
    if (there!.id !== id) throw error;
    try {
      // It may have been appended since.
      return await client.log.entry(id);
    } catch (again) {
      if (!isDenial(again)) throw again;
      throw await caught(
        `The service says that entry ${id} does not exist, but it is in its log.`,
        await against(head, id - 1, there!),
      );
    }
  }
}

/**
 * Like `provenEntries`, but only the entries of a list that match. Nothing can prove that no match is missing.
 * @throws ClientError
 */
export async function matchingEntries(
  { path, filter }: List,
  { skip, count, total: known }: { readonly skip: number; readonly count: number; readonly total?: number },
): Promise<EntrySlice> {
  if (known !== undefined) return newestOf({ path, filter }, { skip, count, total: known });
  // The oldest ones say how many there are, and mostly they are all.
  const first = await page(path, filter, 1, count);
  if (first.total > count || skip > 0) return newestOf({ path, filter }, { skip, count, total: first.total });
  return { entries: first.entries.reverse(), total: first.total };
}

async function newestOf(
  { path, filter }: List,
  { skip, count, total }: { readonly skip: number; readonly count: number; readonly total: number },
): Promise<EntrySlice> {
  const to = Math.max(0, total - skip);
  const from = Math.max(0, to - count);
  const entries = to > from ? await listed(path, filter, from, to) : [];
  return { entries: entries.reverse(), total };
}

/** A list of entries: `/log`, or `/log/by-fingerprint/…`. */
interface List {
  readonly path: string;
  readonly filter: EntryFilter;
}

/**
 * Entries `[from, to)` of a list, oldest first. One request is enough if some page size has all of them on one page.
 */
async function listed(path: string, filter: EntryFilter, from: number, to: number): Promise<Entry[]> {
  const around = pageAround(from, to);
  if (!around) {
    const middle = Math.floor((from + to) / 2);
    const [older, newer] = await Promise.all([listed(path, filter, from, middle), listed(path, filter, middle, to)]);
    return [...older, ...newer];
  }
  const { number, size } = around;
  const { entries } = await page(path, filter, number, size, from % size, to - from);
  return entries;
}

/** A page of the service's, or a part of it; the content of each entry is checked. */
async function page(path: string, filter: EntryFilter, number: number, size: number, skip = 0, count = size) {
  const answer = await http.get(EntryPage, path, { ...filter, page: number, per_page: size, names: "true" });
  learnNames(answer.names);
  const entries = (answer.entries as Entry[]).slice(skip, skip + count);
  for (const entry of entries) {
    const [problem] = checkServiceEntry(entry);
    if (problem?.code === "withheld") await checkWithheld(entry);
    else if (problem) throw await caught(`Entry ${entry.id}: ${problem.message}`, { entry });
  }
  return { entries, total: answer.total };
}

/** Has the entry proven that withholds a listed one, which must be shown as it is by itself: no list is read for that. */
async function checkWithheld(entry: Entry): Promise<void> {
  const isShown = async () => {
    const { entry: shown } = await entryById(entry.id);
    return shown.entry_hash === entry.entry_hash && canonicalJson(shown.payload) === canonicalJson(entry.payload);
  };
  if (await isShown()) return;
  // A node that did not know of it yet may have answered. Who has seen it is not answered by such a node.
  await entryById(entry.withheld_by ?? 0).catch((error: unknown) => {
    if (!isDenial(error)) throw error;
  });
  if (!(await isShown()))
    throw await caught(`Entry ${entry.id} is listed with another content than it is shown.`, { entry });
}

/** Entries by leaf index that were listed around an entry that was opened. Each is checked where it is used. */
const kept = new Map<number, Entry>();
const MAX_KEPT = 500;
/** Entries before and after the wanted ones that are listed with them. */
const MARGIN = 12;

/** The listed entries of leaves `[from, to)` of a tree of `size` leaves; as many as there are. */
async function leaves(from: number, to: number, size: number): Promise<Entry[]> {
  const held = () => Array.from({ length: to - from }, (_, i) => kept.get(from + i));
  if (held().includes(undefined)) {
    const start = Math.max(0, from - MARGIN);
    if (kept.size > MAX_KEPT) kept.clear();
    for (const [i, entry] of (await listed("/log", {}, start, Math.min(size, to + MARGIN))).entries())
      kept.set(start + i, entry);
  }
  return held().filter((entry) => entry !== undefined);
}

/** The smallest page size with which one page contains all of `[from, to)`. */
function pageAround(from: number, to: number): { readonly number: number; readonly size: number } | undefined {
  for (let size = to - from; size <= MAX_PER_PAGE; size++)
    if (Math.floor(from / size) === Math.floor((to - 1) / size)) return { number: Math.floor(from / size) + 1, size };
  return undefined;
}

const isDenial = (error: unknown): boolean => error instanceof ClientError && error.status === 404;

const doesNotFollow = ({ id }: Entry): string => `Entry ${id} does not follow the entry before it.`;

/** Two listed entries should be leaves `leafIndex - 1` and `leafIndex`; returns the one that is not. */
async function foreignOf(head: TreeHead, leafIndex: number, previous: Entry, entry: Entry): Promise<Partial<Evidence>> {
  const before = await against(head, leafIndex - 1, previous);
  const isForeign = before.proof !== null && before.proof.entry_hash !== previous.entry_hash;
  return isForeign ? before : against(head, leafIndex, entry);
}

/**
 * Evidence against `entry`: the proof of the leaf that it should be. If the service refuses this proof, it misbehaves
 * just the same.
 */
async function against(head: TreeHead, leafIndex: number, entry: Entry | null) {
  const proof = await client.log.proof(leafIndex, head.tree_size).catch(() => null);
  return { shown: head, proof, entry };
}

/** An error that raises the alarm when it is shown (`useTask`); the client itself has not detected this. */
async function caught(detail: string, parts: Partial<Evidence>): Promise<ClientError> {
  const [{ pem: operatorKey }, { chain: operators }, state] = await Promise.all([
    client.log.operatorKey(),
    client.log.knownOperators(),
    store.load(),
  ]);
  const known = (state?.head ?? null) as TreeHead | null;
  const evidence = { operatorKey, operators, known, shown: null, proof: null, entry: null, ...parts };
  return new ClientError("log-misbehaved", detail, { evidence });
}
