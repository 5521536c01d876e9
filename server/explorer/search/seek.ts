/**
 * What a reader may mean by a text: the number of an entry, the beginning of a hash or of a fingerprint, words of a title, a
 * part of a name, a tag, or a kind of events.
 */

import { KeyDetail, KeyPage } from "../../../engine/contract/identity/keys.js";
import { kindOf } from "../../../engine/verify/events/kinds.js";
import { soughtWords } from "../../../engine/verify/events/titles.js";
import type { Entry } from "../../../engine/verify/index.js";
import { ClientError, type EntryFilter, type KeySummary } from "../../client/index.js";
import { kindsNamed } from "../components/index.js";
import { matchingEntries } from "../state/entries.js";
import { viewAddress } from "../state/location.js";
import { http } from "../state/service.js";
import type { EntrySlice } from "../state/source.js";
import { sight } from "../state/watching.js";

/** A place that the text names, found without asking the service. */
interface Jump {
  readonly label: string;
  readonly address: string;
}

/** Entries that were found in one way. */
export interface EntryGroup extends EntrySlice {
  readonly how: string;
  /** The list of all of them. */
  readonly address: string;
}

export interface Findings {
  readonly jumps: readonly Jump[];
  readonly groups: readonly EntryGroup[];
  readonly keys: readonly KeySummary[];
  /** Number of keys that have the text in their names. */
  readonly namedKeys: number;
  /** Why something was not searched; a sentence. */
  readonly notices: readonly string[];
}

interface Depth {
  /** At most so many of each group. */
  readonly count: number;
  /** Whether tags are searched, too. */
  readonly hasTags: boolean;
}

const NUMBER = /^#?([1-9]\d{0,14})$/;
const HASH = /^(?:sha256:)?([0-9a-f]{4,128})$/i;
const WHOLE = 64;
const MAX_NAME = 200;
/** Keys that are looked up because a hash was that of an entry about them. */
const MAX_LOOKED_UP = 3;

/** @throws ClientError if the service does not answer, or refuses because of too many requests */
export async function seek(text: string, { count, hasTags }: Depth): Promise<Findings> {
  const notices: string[] = [];
  const find = async (how: string, filter: EntryFilter): Promise<EntryGroup[]> => {
    try {
      const found = await matchingEntries({ path: "/log", filter }, { skip: 0, count });
      return found.total ? [{ ...found, how, address: viewAddress(["entries"], { ...filter }) }] : [];
    } catch (error) {
      // The other ways may find it: this one wants more of the text, or its index is being made.
      if (!(error instanceof ClientError) || (error.status !== 422 && error.code !== "indexing")) throw error;
      notices.push(error.detail);
      return [];
    }
  };
  const [titled, hashed, tagged, named] = await Promise.all([
    soughtWords(text).length ? find("By title or name", { title: text.slice(0, MAX_NAME) }) : [],
    Promise.all(hashesOf(text).map((search) => find("By hash", { search }))),
    hasTags ? find("With this tag", { tags: text }) : [],
    keysNamed(text, count),
  ]);
  const byHash = hashed.flat();
  const keys = [
    ...(await keysOf(
      text,
      byHash.flatMap(({ entries }) => entries),
    )),
    ...named.keys,
  ];
  const isNew = ({ fingerprint }: KeySummary, i: number) =>
    keys.findIndex((key) => key.fingerprint === fingerprint) === i;
  return {
    jumps: jumpsTo(text),
    groups: [...byHash, ...titled, ...tagged],
    keys: keys.filter(isNew),
    namedKeys: named.total,
    notices: [...new Set(notices)],
  };
}

/** Places that need no request. */
export function jumpsTo(text: string): readonly Jump[] {
  const id = Number(NUMBER.exec(text)?.[1] ?? 0);
  const seen = sight.value;
  const size = seen.status === "proven" ? (seen.head?.tree_size ?? 0) : 0;
  const numbered = id > 0 && id <= size ? [{ label: `Entry ${id}`, address: viewAddress(["entries", id]) }] : [];
  const kinds = kindsNamed(text).map(({ label, eventType }) => ({
    label: `All entries of the kind “${label}”`,
    address: viewAddress(["entries"], { event_type: eventType }),
  }));
  return [...numbered, ...kinds];
}

/** The forms in which a payload or an entry may have a hash that begins so; none for other texts. */
function hashesOf(text: string): readonly string[] {
  const digits = HASH.exec(text)?.[1]?.toLowerCase();
  if (digits === undefined) return [];
  // A complete hash is found in both forms; a beginning in the form in which it is stored.
  return digits.length >= WHOLE ? [digits] : [digits, `sha256:${digits}`];
}

async function keysNamed(
  text: string,
  count: number,
): Promise<{ readonly keys: KeySummary[]; readonly total: number }> {
  if (text.length > MAX_NAME) return { keys: [], total: 0 };
  const { keys, total } = await http.get(KeyPage, "/keys/search", { pseudonym: text, page: 1, per_page: count });
  return { keys: [...keys], total };
}

/** The keys whose fingerprints begin with the text, according to entries that were found by it. */
async function keysOf(text: string, entries: readonly Entry[]): Promise<KeySummary[]> {
  const digits = HASH.exec(text)?.[1]?.toLowerCase();
  const fingerprints = entries.flatMap(({ event_type, payload }) => {
    const fingerprint = payload?.fingerprint;
    return kindOf(event_type)?.scope === "keys" &&
      typeof fingerprint === "string" &&
      fingerprint.startsWith(`sha256:${digits}`)
      ? [fingerprint]
      : [];
  });
  const few = [...new Set(fingerprints)].slice(0, MAX_LOOKED_UP);
  const looked = few.map((fingerprint) =>
    http.get(KeyDetail, `/keys/${encodeURIComponent(fingerprint)}`).catch(orNull),
  );
  return (await Promise.all(looked)).filter((key) => key !== null);
}

/** Imported history may tell of keys that were never registered. */
function orNull(error: unknown): null {
  if (error instanceof ClientError && error.status === 404) return null;
  throw error;
}
