/**
 * Projections: how state follows from entries. A projection is the one place where an entry changes derived rows, and
 * the same function runs when the entry is appended, when history is imported and when state is rebuilt.
 */

import type { StateRow } from "../../store/changeset.js";
import { hashedTerm, hashTerm, hexPrefixTerm, TERM_BYTES, textPrefixTerm } from "../../store/postings/term.js";
import type { TermTable } from "../../store/postings/termtable.js";
import {
  type DerivedTable,
  isFiltered,
  type Key,
  type KeyOf,
  POSTING,
  type PrivateTable,
  type RowOf,
  type TableName,
} from "../../store/schema/schema.js";
import { isHexFrom } from "../../verify/bytes/encoding.js";
import { titleWords } from "../../verify/events/titles.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { FINGERPRINT_MEMBERS, SEARCH_MEMBERS } from "../../verify/keys/contract.js";

/** What is asked to be logged. */
export interface EventInput {
  readonly event_type: string;
  readonly payload: JsonObject;
}

/** An event whose terms were made before its turn came: in another thread, for example. */
export interface PreparedEvent extends EventInput {
  /** `termsOf` the event. */
  readonly terms?: string;
}

/** An event that has its place in the log. */
export interface LoggedEvent extends EventInput {
  readonly id: number;
  readonly leafIndex: number;
  /** Canonical form, also where an imported entry spells it otherwise. */
  readonly timestamp: string;
}

/** State as a command sees it: everything that earlier commands wrote, committed or not. */
export interface StateReader {
  get<T extends TableName>(table: T, key: KeyOf<T>): RowOf<T> | undefined;
  /** Rows with `start` <= key < `end`, ascending. */
  range<T extends TableName>(table: T, start: Key, end: Key): readonly StateRow<T>[];
  /** Leaf index of the first entry with this term. */
  first(term: string): number | undefined;
}

/** State with a door to some tables: each kind of code gets the tables that are its own to write. */
export interface StateWriter<W extends TableName> extends StateReader {
  /** Sets a row, or with `undefined` removes it. */
  put<T extends W>(table: T, key: KeyOf<T>, row: RowOf<T> | undefined): void;
}

/** What `apply` gets: tables that follow from the entries. A private row that it wrote would be lost by a rebuild. */
export type DerivedWriter = StateWriter<DerivedTable>;

/** What commands get: tables that follow from nothing. A derived row that one wrote would be missing after a rebuild. */
export type PrivateWriter = StateWriter<PrivateTable>;

export interface Projection {
  /**
   * Whether every entry must be an event of the service's log (`eventMisfit`). Then an entry from outside that is none is
   * refused, and a check of the log names it. Without this, events may be anything.
   */
  readonly checksEvents?: true;
  /** Writes the derived rows that `event` causes. Deterministic: nothing but the event and the state may matter. */
  apply(event: LoggedEvent, state: DerivedWriter): void;
  /**
   * Terms by which the event is found beyond those that every log has (`addLogTerms`). They follow from its type and payload
   * alone.
   */
  addTerms(event: LoggedEvent, terms: Pick<TermTable, "add">): void;
}

/** The projection of a log whose events mean nothing to it. */
export const noProjection: Projection = { apply() {}, addTerms() {} };

const PREFIX = "sha256:";
/** Hex characters of the digests that are filed by their bytes: of 32 and of 64 bytes. */
const DIGEST_CHARACTERS = [64, 128] as const;

/** How a searchable field is filed: by the form it is stored in, because a prefix matches the stored form only. */
function searchTerm(value: string): string {
  const folded = value.toLowerCase();
  const from = folded.startsWith(PREFIX) ? PREFIX.length : 0;
  if (!DIGEST_CHARACTERS.some((characters) => isHexFrom(folded, from, characters)))
    return textPrefixTerm(POSTING.fieldText, folded);
  return hexPrefixTerm(from ? POSTING.prefixedHash : POSTING.bareHash, folded.slice(from));
}

/** Files `event` under its type, tags, fingerprints, searchable fields and the words of its titles. */
export function addLogTerms(event: LoggedEvent, terms: Pick<TermTable, "add">): void {
  const { leafIndex, payload } = event;
  terms.add(hashedTerm(POSTING.eventType, event.event_type), leafIndex);
  if (Array.isArray(payload.tags))
    for (const tag of payload.tags)
      if (typeof tag === "string") terms.add(hashedTerm(POSTING.tag, tag.toLowerCase()), leafIndex);
  for (const field of FINGERPRINT_MEMBERS) {
    const value = payload[field];
    if (typeof value === "string") terms.add(hashTerm(POSTING.fingerprint, value.toLowerCase()), leafIndex);
  }
  for (const field of SEARCH_MEMBERS) {
    const value = payload[field];
    if (typeof value === "string") terms.add(searchTerm(value), leafIndex);
  }
  const document = payload.document_hash;
  if (typeof document === "string") terms.add(hashTerm(POSTING.document, document.toLowerCase()), leafIndex);
  addTitleTerms(event, terms);
}

/**
 * All terms of an event, one behind the other, but for those of its entry's hashes. They depend on neither its place nor its
 * time, so they can be made before it has them.
 */
export function eventTerms({ event_type, payload }: EventInput, projection: Projection): string {
  let terms = "";
  const collector = {
    add(term: string): void {
      terms += term;
    },
  };
  const placeless: LoggedEvent = { event_type, payload, id: 0, leafIndex: 0, timestamp: "" };
  projection.addTerms(placeless, collector);
  addLogTerms(placeless, collector);
  return terms;
}

/** The keys in `withheldTerms` of those terms of a payload that stay when it is withheld. @param terms one behind the other */
export function withheldKeys(terms: string): readonly string[] {
  const keys: string[] = [];
  for (let from = 0; from < terms.length; from += TERM_BYTES)
    if (isFiltered(terms.charCodeAt(from)))
      keys.push(Buffer.from(terms.slice(from, from + TERM_BYTES), "latin1").toString("hex"));
  return keys;
}

/** Files `event` under the words of its titles. */
export function addTitleTerms({ leafIndex, payload }: LoggedEvent, terms: Pick<TermTable, "add">): void {
  for (const word of titleWords(payload)) terms.add(textPrefixTerm(POSTING.titleWord, word), leafIndex);
}

/** Files an entry under one of its `entry_hashes`. */
export function addDigestTerm(digestHex: string, leafIndex: number, terms: Pick<TermTable, "add">): void {
  terms.add(hexPrefixTerm(POSTING.digest, digestHex.toLowerCase()), leafIndex);
}
