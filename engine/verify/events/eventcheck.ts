/**
 * Checks whether an entry of the service's log is an event of its stated type. No hash covers an entry's `event_type`:
 * anybody who serves or passes on an entry can relabel it. A revocation could be relabelled as a type that nobody looks
 * at. The payload is hashed, so the payload decides what the event is.
 *
 * The payloads of the service's own events have a member `event_type`. Attestations have `attestation_type`, which
 * determines their predicate. Older entries lack that member and are judged by their other members.
 */

import { type JsonObject, objectOf, type Shape } from "../json/shape.js";
import { PREDICATE_PATHS } from "../keys/contract.js";
import { checkEntry, type Entry, type EntryProblem } from "../tree/entry.js";
import {
  ATTESTATION_KIND,
  EVENT_KINDS,
  EVENT_TYPES,
  type EventKind,
  type EventType,
  isEventType,
  isPredicate,
  type KindedEvent,
  payloadMisfit,
} from "./kinds.js";
import { eventIn, withholdableFault } from "./withheld.js";

type TypedEntry = Pick<Entry, "chain_version"> & KindedEvent;

/** One of the service's own event types, or all predicates together. */
type Kind = EventType | typeof ATTESTATION;
/** An event type that version 1 logs of the service's predecessor may have (docs/spec §2.5). */
const ATTESTATION = "attestation";

interface Judged {
  readonly kind: Kind;
  readonly members: readonly string[];
  /** The members that every payload of this kind has. */
  readonly required: readonly string[];
  /** Accepts a payload that has all members except those that may be null or empty, which old entries may lack. */
  readonly shape: Shape;
}

/** Claims from before commitments were keyed lack these (docs/spec §11.4). */
const CLAIMS_LACKED: readonly string[] = ["commitment_alg", "ephemeral_public_key", "nonce"];

const JUDGED: readonly Judged[] = [
  ...EVENT_TYPES.map((type) => judged(type, EVENT_KINDS[type])),
  judged(ATTESTATION, ATTESTATION_KIND),
];

function judged(kind: Kind, { payload, added }: EventKind): Judged {
  const mayLack = (name: string, shape: Shape) =>
    added?.includes(name) ||
    shape(null, "") === undefined ||
    shape([], "") === undefined ||
    (kind === "encrypted_claim" && CLAIMS_LACKED.includes(name));
  const members = Object.entries(payload);
  const required = Object.fromEntries(members.filter(([name, shape]) => !mayLack(name, shape)));
  const optional = Object.fromEntries(members.filter(([name, shape]) => mayLack(name, shape)));
  const shape = objectOf(required, optional, "ignored");
  return { kind, members: Object.keys(payload), required: Object.keys(required), shape };
}

/**
 * The reason why an entry is not an event of its type, as a sentence; undefined if it is. Only the type and the payload
 * are checked: check the hashes first (`checkEntry`).
 *
 * Only imported history has version 1 entries. Their makers may have had other types and members. So a version 1 entry
 * is refused only if its payload has exactly the members of another type than the stated one.
 */
export function eventMisfit({ event_type, payload, chain_version = 1 }: TypedEntry): string | undefined {
  const type = JSON.stringify(event_type);
  if (Object.hasOwn(payload, "event_type")) {
    if (payload.event_type !== event_type)
      return `The event type is ${type}, but the payload says ${JSON.stringify(payload.event_type)}.`;
    return isEventType(event_type) ? payloadMisfit({ event_type, payload }) : `The event type ${type} is not known.`;
  }
  const kind = kindOfType(event_type, chain_version);
  if (kind === undefined && chain_version === 2)
    return `The event type ${type} is not known, and it is no https predicate URL.`;
  const found = kindsOfPayload(payload, chain_version === 1);
  if (!found.length) return chain_version === 1 ? undefined : payloadMisfit({ event_type, payload });
  if (kind === undefined || !found.includes(kind))
    return `The event type is ${type}, but the payload is that of another event: ${found.join(" or ")}.`;
  // The members of version 1 attestations may have any values.
  if (kind !== ATTESTATION || chain_version === 1) return undefined;
  return isPredicateOf(event_type, payload.attestation_type as string)
    ? undefined
    : `The event type ${type} is not the predicate of the attestation type ${JSON.stringify(payload.attestation_type)}.`;
}

/** Checks like `checkEntry`, and also that the event type is right. For entries of the service's log. */
export function checkServiceEntry(entry: Entry, sha256?: (preimage: Uint8Array) => Uint8Array): EntryProblem[] {
  const problems = checkEntry(entry, sha256);
  if (problems[0]?.code === "malformed-entry") return problems;
  const misfit = entry.payload === null ? withholdableFault(entry.event_type) : eventMisfit(eventIn(entry));
  return misfit === undefined ? problems : [...problems, { code: "wrong-event", message: misfit }];
}

/**
 * Whether an event type is the predicate of an attestation type. An `https:` type is its own predicate. A short type
 * gives a path under the predicate base.
 * @param base URL without trailing slash; if it is not known, any `https:` URL that ends in the path is accepted
 */
export function isPredicateOf(eventType: string, attestationType: string, base?: string): boolean {
  if (attestationType.startsWith("https://")) return eventType === attestationType;
  const path = PREDICATE_PATHS.get(attestationType);
  if (path === undefined) return false;
  return base === undefined ? eventType.startsWith("https://") && eventType.endsWith(path) : eventType === base + path;
}

function kindOfType(eventType: string, version: 1 | 2): Kind | undefined {
  if (isEventType(eventType)) return eventType;
  const isAttestation =
    version === 2 ? eventType.startsWith("https://") : isPredicate(eventType) || eventType === ATTESTATION;
  return isAttestation ? ATTESTATION : undefined;
}

/**
 * The kinds that a payload without `event_type` may be of. A payload may have further members, so several kinds may
 * fit: a succession has all members of a registration except one. Only the kinds with the most matching members count.
 * @param exactly whether it must have no further members except `tags`, which any event may have
 */
function kindsOfPayload(payload: JsonObject, exactly: boolean): readonly Kind[] {
  let most = 0;
  let kinds: Kind[] = [];
  for (const { kind, members, required, shape } of JUDGED) {
    // Most kinds are ruled out by names alone, without a sentence about each.
    if (!required.every((name) => Object.hasOwn(payload, name)) || shape(payload, "") !== undefined) continue;
    if (exactly && Object.keys(payload).some((name) => name !== "tags" && !members.includes(name))) continue;
    const count = members.filter((name) => Object.hasOwn(payload, name)).length;
    if (count < most) continue;
    if (count > most) kinds = [];
    most = count;
    kinds.push(kind);
  }
  return kinds;
}
