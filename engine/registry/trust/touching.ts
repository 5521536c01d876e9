/**
 * Which keys an event changes for the trust that anchors pass on. An event that names a key within reach is not enough: anybody
 * may offer an endorsement to such a key. The events are found through the postings by event type.
 */
import type { Steps } from "../../base/turns.js";
import type { Log } from "../../log/log.js";
import { hashedTerm } from "../../store/postings/term.js";
import { POSTING } from "../../store/schema/schema.js";
import type { EventType, KindedEvent } from "../../verify/events/kinds.js";
import { eventIn } from "../../verify/events/withheld.js";
import { GRAPH_EVENTS } from "../events/graph.js";
import type { TrustLevels } from "./levels.js";

/** An offer is no endorsement before it is accepted. */
const TRUST_EVENTS: readonly EventType[] = GRAPH_EVENTS.filter((type) => type !== "endorsement_offer");
const ENDORSEMENTS: readonly string[] = ["endorsement_acceptance", "endorsement_withdrawal", "acceptance_revocation"];
/** Members that name the keys whose status an event changes, and the key of an alert. */
const NAMING = ["fingerprint", "old_fingerprint", "compromised_key_fingerprint"] as const;
/** Events between two pauses. */
const STEP = 16;

const eventsOf = (log: Log, type: EventType) => log.postings(hashedTerm(POSTING.eventType, type));

/** The entries with such events from leaf index `from` on, in pieces. A list is valid only up to the next pause. */
function* eventsFrom(log: Log, type: EventType, from: number): Generator<KindedEvent[], void, void> {
  for (let next = from; ; ) {
    const indexes = eventsOf(log, type).window(next, STEP);
    if (!indexes.length) return;
    yield indexes.map((leafIndex) => eventIn(log.entryAt(leafIndex)!));
    next = indexes.at(-1)! + 1;
  }
}

/** Number of events since a size of the log that `changedKeys` reads. */
export const eventsSince = (log: Log, size: number): number =>
  TRUST_EVENTS.reduce((count, type) => {
    const list = eventsOf(log, type);
    return count + list.length - list.seek(size);
  }, 0);

/**
 * The keys of which the entries from leaf index `size` on may have changed something that these levels depend on. An endorsement
 * is read from its endorser; and from the endorsed key if there is an alert about it, which counts only while its endorsement does.
 */
export function* changedKeys(log: Log, size: number, levels: TrustLevels): Steps<ReadonlySet<string>> {
  const changed = new Set<string>();
  if (size === log.size) return changed;
  // Members of imported history may be anything; what is no fingerprint names no key.
  const key = (name: unknown) => {
    if (levels.passesOn(name as string)) changed.add(name as string);
    for (const alerted of levels.alertedBy(name as string)) changed.add(alerted);
  };
  const event = ({ event_type, payload }: KindedEvent) => {
    const { endorser_key_fingerprint: endorser, endorsed_key_fingerprint: endorsed } = payload;
    if (!ENDORSEMENTS.includes(event_type)) for (const member of NAMING) key(payload[member]);
    else {
      if (levels.passesOn(endorser as string)) changed.add(endorser as string);
      if (levels.hasAlerts(endorsed as string)) changed.add(endorsed as string);
    }
  };
  let read = 0;
  const isPause = (count: number): boolean => {
    read += count;
    if (read < STEP) return false;
    read = 0;
    return true;
  };
  for (const type of TRUST_EVENTS)
    for (const piece of eventsFrom(log, type, size)) {
      for (const entry of piece) event(entry);
      if (isPause(piece.length)) yield;
    }
  // A busy log has many registrations, nearly all of keys that no anchor reaches. So either these are read, or the rows of keys
  // that may name themselves, whichever are fewer.
  const registrations = eventsOf(log, "key_registration");
  if (registrations.length - registrations.seek(size) <= levels.unnamed.size)
    for (const piece of eventsFrom(log, "key_registration", size)) {
      for (const { payload } of piece) key(payload.fingerprint);
      if (isPause(piece.length)) yield;
    }
  else
    for (const fingerprint of levels.unnamed) {
      if (log.row("keys", fingerprint)?.named) key(fingerprint);
      if (isPause(1)) yield;
    }
  return changed;
}
