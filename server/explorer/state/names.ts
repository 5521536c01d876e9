/**
 * Names of keys, as their holders chose them: the service says them beside entries and lists. Nothing proves a name, and
 * several keys may have the same, so it is never shown without the beginning of the fingerprint.
 */

import { Cell } from "./cell.js";

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
export const keyName = (fingerprint: string): string | undefined => names.get(fingerprint);

/** Characters that are not seen, or that turn around what is beside them. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cc}\ufff9-\ufffb\u2800]/gu;

/** Scripts whose letters take another form at a joiner. */
const JOINING = "[\\u0600-\\u109f\\u1780-\\u18af]";

/**
 * What is kept although it cannot be seen, because it says how its neighbours look: in emoji, between letters, behind Chinese
 * characters. Then spaces. Then everything that cannot be seen, or that is drawn around other characters.
 */
const UNCLEAR = new RegExp(
  `(\\p{ExtPict}(?:[\\ufe0e\\ufe0f\\p{EMod}]|\\u200d(?=\\p{ExtPict}))*|[0-9#*]\\ufe0f\\u20e3|` +
    `${JOINING}[\\u200c\\u200d\\u180b-\\u180e](?=${JOINING})|\\p{sc=Han}[\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}])|` +
    `(\\s+)|(?:\\p{Me}|${INVISIBLE.source})+`,
  "gu",
);
/** No language stacks more marks on a letter. */
const STACKED = /(\p{Mn}{3})\p{Mn}+/gu;

/** A text that others chose, without what could make it look like another one. U+FFFD shows where something was left out. */
export const shownText = (text: string): string =>
  text
    .trim()
    .replace(STACKED, "$1\ufffd")
    .replace(UNCLEAR, (_, kept?: string, space?: string) => kept ?? (space ? " " : "\ufffd")) || "\ufffd";

/** The form in which two names are compared: keys with the same one are told apart. */
export const foldedName = (name: string): string =>
  name.normalize("NFKC").replace(INVISIBLE, "").replace(/\s+/g, " ").trim().toLowerCase();

/** The folded names that more than one of these names has. */
export function sharedNames(all: readonly string[]): ReadonlySet<string> {
  const folded = all.map(foldedName);
  return new Set(folded.filter((name, i) => folded.indexOf(name) !== i));
}
