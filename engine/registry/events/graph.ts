/**
 * Recent events of the endorsement graph: whether the entries since some size of the log name one of a set of keys.
 * They are found through the postings by event type, so appends need no listener and pay nothing for it.
 */
import type { Log } from "../../log/log.js";
import { hashedTerm } from "../../store/postings/term.js";
import { POSTING } from "../../store/schema/schema.js";
import { EVENT_KINDS, EVENT_TYPES, type EventType, type KindedEvent } from "../../verify/events/kinds.js";
import { eventIn } from "../../verify/events/withheld.js";

/** The kinds of events that change the graph. */
export const GRAPH_EVENTS: readonly EventType[] = EVENT_TYPES.filter((type) => EVENT_KINDS[type].changesGraph);
const REGISTRATIONS = hashedTerm(POSTING.eventType, "key_registration");
/** Payload members that name a key of the graph. */
const MEMBERS: readonly string[] = [
  ...new Set(GRAPH_EVENTS.flatMap((type): readonly string[] => EVENT_KINDS[type].keys)),
];
/**
 * Number of events that are read, and of rows. With more, the answer is "perhaps", because reading on could cost more than it saves.
 */
const MAX_READ = 256;

/** The keys that an answer depends on. */
export interface AskedKeys {
  readonly asked: ReadonlySet<string>;
  /** Those of them that had not named themselves. */
  readonly unnamed: ReadonlySet<string>;
}

/**
 * Whether the entries from leaf index `size` on may change what an answer says of its keys: an event of the graph names
 * one, or one has named itself. Clients decide how many such events there are; with more than a few hundred, the answer
 * is true without reading them.
 */
export function isTouchedSince(log: Log, size: number, { asked, unnamed }: AskedKeys): boolean {
  if (size === log.size) return false;
  // A busy log has many registrations, nearly all of keys that nobody has asked for. So the rows are read instead.
  if (unnamed.size && log.postings(REGISTRATIONS).seek(size) < log.postings(REGISTRATIONS).length) {
    if (unnamed.size > MAX_READ) return true;
    for (const fingerprint of unnamed) if (log.row("keys", fingerprint)?.named) return true;
  }
  let read = 0;
  // Members of imported history may be anything; what is no fingerprint is in no set.
  const touches = ({ payload }: KindedEvent) => MEMBERS.some((member) => asked.has(payload[member] as string));
  for (const type of GRAPH_EVENTS) {
    const list = log.postings(hashedTerm(POSTING.eventType, type));
    for (let rank = list.seek(size); rank < list.length; rank++)
      if (++read > MAX_READ || touches(eventIn(log.entryAt(list.at(rank))!))) return true;
  }
  return false;
}
