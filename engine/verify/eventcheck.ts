/**
 * Whether an entry of the service's log is an event of the type that it is said to be of. No hash covers an entry's
 * `event_type`: who serves or passes on an entry can relabel it, a revocation for example as something that nobody looks
 * at. What is hashed is the payload, so the payload says what the event is.
 *
 * The payloads of the service's own events have a member `event_type`. Attestations have `attestation_type`, which their
 * predicate follows from. Entries from before there was that member are judged by their other members.
 */
import { PREDICATE_PATHS } from "./contract.js";
import { checkEntry, type Entry, type EntryProblem } from "./entry.js";
import { objectOf, type Shape } from "./json/shape.js";
import {
  ATTESTATION_KIND,
  EVENT_KINDS,
  EVENT_TYPES,
  type EventKind,
  type EventType,
  isEventType,
  isPredicate,
  payloadMisfit,
} from "./kinds.js";

type TypedEntry = Pick<Entry, "event_type" | "payload" | "chain_version">;

/** One of the service's own event types, or all predicates together. */
type Kind = EventType | typeof ATTESTATION;
/** Version 1 logs of the service's predecessor may have it as the event type (`spec.md`, Events). */
const ATTESTATION = "attestation";

interface Judged {
  readonly kind: Kind;
  readonly members: readonly string[];
  /** Takes a payload that has all members but those that may be null or empty: old entries may lack these. */
  readonly shape: Shape;
}

/** Claims from before commitments were keyed lack these (`spec.md`, Versioning 4). */
const CLAIMS_LACKED: readonly string[] = ["commitment_alg", "ephemeral_public_key", "nonce"];

const JUDGED: readonly Judged[] = [
  ...EVENT_TYPES.map((type) => judged(type, EVENT_KINDS[type])),
  judged(ATTESTATION, ATTESTATION_KIND),
];

function judged(kind: Kind, { payload }: EventKind): Judged {
  const mayLack = (name: string, shape: Shape) =>
    shape(null, "") === undefined ||
    shape([], "") === undefined ||
    (kind === "encrypted_claim" && CLAIMS_LACKED.includes(name));
  const members = Object.entries(payload);
  const required = Object.fromEntries(members.filter(([name, shape]) => !mayLack(name, shape)));
  const optional = Object.fromEntries(members.filter(([name, shape]) => mayLack(name, shape)));
  return { kind, members: Object.keys(payload), shape: objectOf(required, optional, "ignored") };
}

/**
 * What keeps an entry from being an event of its type, as a sentence; undefined when nothing does. Only the type and the
 * payload are looked at: check the hashes first (`checkEntry`).
 *
 * Version 1 entries come from imported history alone. Their makers may have had other types and members, so a version 1
 * entry is refused only when its payload has exactly the members of another type than it is said to be of.
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
  // Members of version 1 attestations are as their makers wrote them.
  if (kind !== ATTESTATION || chain_version === 1) return undefined;
  return isPredicateOf(event_type, payload.attestation_type as string)
    ? undefined
    : `The event type ${type} is not the predicate of the attestation type ${JSON.stringify(payload.attestation_type)}.`;
}

/** As `checkEntry`, for an entry of the service's log, whose event types are known. */
export function checkServiceEntry(entry: Entry, sha256?: (preimage: Uint8Array) => Uint8Array): EntryProblem[] {
  const problems = checkEntry(entry, sha256);
  if (problems[0]?.code === "malformed-entry") return problems;
  const misfit = eventMisfit(entry);
  return misfit === undefined ? problems : [...problems, { code: "wrong-event", message: misfit }];
}

/**
 * Whether an event type is the predicate of an attestation type: an `https:` type is its own predicate, a short one is a
 * path under the predicate base.
 * @param base URL without trailing slash; where it is not known, any `https:` URL that ends in the path will do
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
 * The kinds that a payload without `event_type` can be of. Several kinds may fit, since a payload may have further members:
 * of a succession, a registration has all but one. Those count of which it has the most members.
 * @param exactly whether it may have no further members but `tags`, which any event may have
 */
function kindsOfPayload(payload: Entry["payload"], exactly: boolean): readonly Kind[] {
  let most = 0;
  let kinds: Kind[] = [];
  for (const { kind, members, shape } of JUDGED) {
    if (shape(payload, "") !== undefined) continue;
    if (exactly && Object.keys(payload).some((name) => name !== "tags" && !members.includes(name))) continue;
    const count = members.filter((name) => Object.hasOwn(payload, name)).length;
    if (count < most) continue;
    if (count > most) kinds = [];
    most = count;
    kinds.push(kind);
  }
  return kinds;
}
