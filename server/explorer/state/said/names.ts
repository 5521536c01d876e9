/**
 * Names of keys, as their holders chose them: the service says them beside entries and lists. Nothing proves a name, and
 * several keys may have the same, so it is never shown without the beginning of the fingerprint.
 */

import { Cell } from "../cell.js";

const names = new Map<string, string>();
/** Changes when a name was learnt, so that what is on the screen shows it. */
export const learnt = new Cell(0);
/** More than any page shows. */
const MAX_NAMES = 5_000;

/** @param more name by fingerprint */
export function learnNames(more: Readonly<Record<string, string>> | undefined): void {
  if (names.size > MAX_NAMES) names.clear();
  const unknown = Object.entries(more ?? {}).filter(([fingerprint, name]) => names.get(fingerprint) !== name);
  for (const [fingerprint, name] of unknown) names.set(fingerprint, name);
  if (unknown.length) learnt.value++;
}

/** Undefined if no answer has named the key. */
export const nameOf = (fingerprint: string): string | undefined => names.get(fingerprint);

/** Characters that are not seen, or that turn around what is beside them. */
const INVISIBLE = /[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]/g;

/** A text that others chose, without characters that could make it look like another one. */
export const shownText = (text: string): string => text.replace(INVISIBLE, "\ufffd");

/** The form in which two names are compared: keys with the same one are told apart. */
export const foldedName = (name: string): string =>
  name.normalize("NFKC").replace(INVISIBLE, "").replace(/\s+/g, " ").trim().toLowerCase();

/** The folded names that more than one of these names has. */
export function sharedNames(all: readonly string[]): ReadonlySet<string> {
  const folded = all.map(foldedName);
  return new Set(folded.filter((name, i) => folded.indexOf(name) !== i));
}
