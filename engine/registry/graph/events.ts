/**
 * Recent events of the endorsement graph: whether the entries since some size of the log name one of a set of keys.
 * They are found through the postings by event type, so appends need no listener and pay nothing for it.
 */
import type { Log } from "../../log/log.js";
import { hashedTerm } from "../../store/postings/term.js";
import { POSTING } from "../../store/schema.js";
import { EVENT_KINDS, EVENT_TYPES } from "../../verify/kinds.js";

const TYPES = EVENT_TYPES.filter((type) => EVENT_KINDS[type].changesGraph);
const TERMS = TYPES.map((type) => hashedTerm(POSTING.eventType, type));
/** Payload members that name a key of the graph. */
const MEMBERS: readonly string[] = [...new Set(TYPES.flatMap((type): readonly string[] => EVENT_KINDS[type].keys))];
/**
 * Number of events that are read. With more, the answer is "perhaps", because reading on could cost more than it saves.
 */
const MAX_READ = 256;

/**
 * Whether an event of the graph among the entries from leaf index `size` on may name one of `keys`. Clients decide how
 * many such events there are; with more than a few hundred, the answer is true without reading them.
 */
export function isTouchedSince(log: Log, size: number, keys: ReadonlySet<string>): boolean {
  if (size === log.size) return false;
  let read = 0;
  for (const term of TERMS) {
    const list = log.postings(term);
    for (let rank = list.seek(size); rank < list.length; rank++) {
      if (++read > MAX_READ) return true;
      const { payload } = log.entryAt(list.at(rank))!;
      // Members of imported history may be anything; a value that is not a fingerprint is in no set.
      if (MEMBERS.some((member) => keys.has(payload[member] as string))) return true;
    }
  }
  return false;
}
