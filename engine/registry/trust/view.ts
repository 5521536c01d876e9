/**
 * The endorsement graph at one moment: keys and endorsements from a snapshot, their status from the time. It records
 * which keys were read, and when an answer may change first, so that answers can be cached until then.
 */
import type { Steps } from "../../base/turns.js";
import type { Log } from "../../log/log.js";
import { type Clock, formatTimestamp, parseTimestamp } from "../../log/state/clock.js";
import { hashedTerm } from "../../store/postings/term.js";
import type { EndorsementEdgeRow } from "../../store/schema/rows.js";
import { POSTING } from "../../store/schema/schema.js";
import type { Snapshot } from "../../store/store.js";
import type { EventType, KindedEvent } from "../../verify/events/kinds.js";
import { eventIn } from "../../verify/events/withheld.js";
import type { EndorsementStatus } from "../../verify/keys/contract.js";
import { type EndorsementTime, endorsementStatus, timeAt } from "../events/endorsements.js";
import { GRAPH_EVENTS } from "../events/graph.js";
import { type KeyStanding, standingOf } from "../events/keys.js";
import { OPERATOR_PSEUDONYM } from "../keys/keys.js";
import type { TrustLevels } from "./levels.js";
import type { Endorser, TrustView } from "./trust.js";

/** Rows between two pauses. */
const STEP = 32;
const DAY_MICROS = 86_400_000_000;
const DATE_CHARACTERS = 10;

/** An endorsement as seen from one of its two keys. */
export interface EndorsementEdge extends EndorsementEdgeRow {
  readonly offer_entry_id: number;
  readonly status: EndorsementStatus;
}

/** The direction in which an endorsement is followed: from the endorser, or from the endorsed key. */
export type EndorsementDirection = "issued" | "received";

const UNREGISTERED_OPERATOR = { pseudonym: OPERATOR_PSEUDONYM, status: "active", named: false } as const;
const TABLES = { issued: "endorsementsByEndorser", received: "endorsementsByEndorsed" } as const;
type EdgeTable = (typeof TABLES)[EndorsementDirection] | "acceptedEndorsements";

export interface GraphParts {
  readonly log: Log;
  /** Fingerprint of the operator key, which is active even if it is not registered. */
  readonly operator: string;
  readonly activationDelaySeconds: number;
}

/** Runs `work` on the graph at the moment when the work begins. */
export function* viewing<T>(parts: GraphParts, clock: Clock, work: (view: GraphView) => Steps<T>): Steps<T> {
  const snapshot = parts.log.snapshot();
  try {
    return yield* work(new GraphView(snapshot, parts, clock()));
  } finally {
    snapshot.close();
  }
}

export class GraphView implements TrustView {
  readonly #snapshot: Snapshot;
  readonly #parts: GraphParts;
  readonly #time: EndorsementTime;
  /** Microseconds. */
  readonly now: number;
  /** Keys whose status or endorsements were read. */
  readonly asked = new Set<string>();
  /** Those of them that have not named themselves: a registration may change their name and status. */
  readonly unnamed = new Set<string>();
  /** Whether an alert was read. It counts only while the endorsement of its endorser does. */
  #hasAlerts = false;
  /** Microseconds: until then, all answers stay valid unless `isTouchedSince` says that they changed. */
  holdsUntil = Number.POSITIVE_INFINITY;

  /** Use `viewing`. */
  constructor(snapshot: Snapshot, parts: GraphParts, now: number) {
    this.#snapshot = snapshot;
    this.#parts = parts;
    this.now = now;
    this.#time = timeAt(formatTimestamp(now), parts.activationDelaySeconds);
  }

  /** Undefined if there is no such key. */
  key(fingerprint: string): (KeyStanding & { readonly pseudonym: string }) | undefined {
    this.asked.add(fingerprint);
    const row = this.#snapshot.get("keys", fingerprint);
    if (!row) return fingerprint === this.#parts.operator ? UNREGISTERED_OPERATOR : undefined;
    if (row.status === "active" && row.expires_at !== null) this.#note(parseTimestamp(row.expires_at));
    if (!row.named) this.unnamed.add(fingerprint);
    return { pseudonym: row.pseudonym, ...standingOf(row, this.#time.now) };
  }

  isActive(fingerprint: string): boolean {
    return this.key(fingerprint)?.status === "active";
  }

  /** Every endorsement of the key in one direction and of any status, oldest offer first. */
  edges(fingerprint: string, direction: EndorsementDirection): Iterable<EndorsementEdge> {
    return this.#edgesIn(TABLES[direction], fingerprint);
  }

  /** The endorsements that the key has accepted, oldest offer first. */
  accepted(fingerprint: string): Iterable<EndorsementEdge> {
    return this.#edgesIn("acceptedEndorsements", fingerprint);
  }

  *#edgesIn(table: EdgeTable, fingerprint: string): Iterable<EndorsementEdge> {
    this.asked.add(fingerprint);
    const rows = this.#snapshot.range(table, [fingerprint, 0], [fingerprint, Number.POSITIVE_INFINITY]);
    for (const { key, row } of rows) {
      const status = endorsementStatus(row, this.#time);
      this.#noteEdge(row, status);
      yield { ...row, offer_entry_id: key[1], status };
    }
  }

  /** A view of its own reads the key, so that it is known what this key depends on, and until when. */
  *endorser(fingerprint: string): Steps<Endorser> {
    const view = new GraphView(this.#snapshot, this.#parts, this.now);
    const isActive = view.isActive(fingerprint);
    const isAlerted = isActive && (yield* view.isAlerted(fingerprint));
    const issued = isActive ? yield* view.issued(fingerprint) : [];
    const others = [...view.asked].filter((asked) => asked !== fingerprint);
    return {
      isActive,
      isAlerted,
      hasAlerts: view.#hasAlerts,
      issued,
      others,
      unnamed: view.unnamed,
      until: view.holdsUntil,
    };
  }

  *issued(fingerprint: string): Steps<string[]> {
    const endorsed: string[] = [];
    for (const edge of yield* this.active(fingerprint)) endorsed.push(edge.other_fingerprint);
    return endorsed;
  }

  /** The active endorsements that the key has issued, oldest offer first. */
  *active(fingerprint: string): Steps<EndorsementEdge[]> {
    const active: EndorsementEdge[] = [];
    let seen = 0;
    for (const edge of this.edges(fingerprint, "issued")) {
      if (edge.status === "active") active.push(edge);
      if (++seen % STEP === 0) yield;
    }
    return active;
  }

  /**
   * Whether there is a live alert. An alert applies only to endorsements that were offered before it: an endorser that
   * endorses the key again withdraws its alert.
   */
  *isAlerted(fingerprint: string): Steps<boolean> {
    this.asked.add(fingerprint);
    // One row for each key that filed any: an endorser may file as many as it likes.
    const alerts = this.#snapshot.range("newestAlerts", [fingerprint], [fingerprint, "\uffff"]);
    const newest = new Map<string, number>();
    let seen = 0;
    for (const { key, row } of alerts) {
      newest.set(key[1], row.alert_entry_id);
      if (++seen % STEP === 0) yield;
    }
    if (!newest.size) return false;
    this.#hasAlerts = true;
    for (const { other_fingerprint, offer_entry_id, status } of this.accepted(fingerprint)) {
      const alert = newest.get(other_fingerprint);
      if (alert !== undefined && alert > offer_entry_id && status === "active" && this.isActive(other_fingerprint))
        return true;
      if (++seen % STEP === 0) yield;
    }
    return false;
  }

  #noteEdge({ accepted_at, valid_until }: EndorsementEdgeRow, status: EndorsementStatus): void {
    if (status === "pending_activation")
      this.#note(parseTimestamp(accepted_at!) + this.#parts.activationDelaySeconds * 1_000_000);
    if (valid_until !== null && (status === "pending_activation" || status === "active" || status === "offered"))
      this.#note(endOf(valid_until));
  }

  /** Times of version 1 entries may not be valid times (NaN); these are ignored. */
  #note(micros: number): void {
    if (micros > this.now && micros < this.holdsUntil) this.holdsUntil = micros;
  }
}

/** The first moment after a validity: the moment in the text, or the beginning of the day after a date. */
function endOf(validUntil: string): number {
  if (validUntil.length > DATE_CHARACTERS) return parseTimestamp(validUntil);
  return Date.parse(`${validUntil}T00:00:00Z`) * 1000 + DAY_MICROS;
}

// Which keys an event changes for the trust that anchors pass on. An event that names a key within reach is not enough: anybody
// may offer an endorsement to such a key. The events are found through the postings by event type.

/** An offer is no endorsement before it is accepted. */
const TRUST_EVENTS: readonly EventType[] = GRAPH_EVENTS.filter((type) => type !== "endorsement_offer");
const ENDORSEMENTS: readonly string[] = ["endorsement_acceptance", "endorsement_withdrawal", "acceptance_revocation"];
/** Members that name the keys whose status an event changes, and the key of an alert. */
const NAMING = ["fingerprint", "old_fingerprint", "compromised_key_fingerprint"] as const;
/** Events between two pauses. */
const EVENTS_A_STEP = 16;

const eventsOf = (log: Log, type: EventType) => log.postings(hashedTerm(POSTING.eventType, type));

/** The entries with such events from leaf index `from` on, in pieces. A list is valid only up to the next pause. */
function* eventsFrom(log: Log, type: EventType, from: number): Generator<KindedEvent[], void, void> {
  for (let next = from; ; ) {
    const indexes = eventsOf(log, type).window(next, EVENTS_A_STEP);
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
    if (read < EVENTS_A_STEP) return false;
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
