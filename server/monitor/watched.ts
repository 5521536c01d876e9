/** Finds the entries that concern a key: their payload names it in a member for fingerprints. */

import { membersIn } from "../../engine/verify/events/withheld.js";
import type { Entry } from "../../engine/verify/index.js";

/**
 * The watched fingerprints that an entry names, each once. They may be in the six members of `GET /log/by-fingerprint`,
 * and in every other member of the payload whose name ends in `fingerprint` (the target of a request, the key of an
 * alert).
 * @param watched in the log's form, `sha256:` and lower-case hex
 */
export function namedIn(entry: Entry, watched: ReadonlySet<string>): string[] {
  const named = new Set<string>();
  for (const [member, value] of Object.entries(membersIn(entry))) {
    if (!member.endsWith("fingerprint") || typeof value !== "string") continue;
    const fingerprint = value.toLowerCase();
    if (watched.has(fingerprint)) named.add(fingerprint);
  }
  return [...named];
}
