/** Describes log events in words. Others choose event types and payloads: members may be missing or of another type. */

import { isPredicateOf } from "../../../engine/verify/events/eventcheck.js";
import {
  ATTESTATION_KIND,
  EVENT_KINDS,
  EVENT_TYPES,
  type EventKind,
  type EventType,
  isEventType,
  isPredicate,
  KEY_MEMBERS,
} from "../../../engine/verify/events/kinds.js";
import type { Entry } from "../../../engine/verify/index.js";
import { PREDICATE_PATHS } from "../../../engine/verify/keys/contract.js";
import { predicateBase } from "../state/introduction.js";
import { shownText } from "../state/names.js";
import type { Tone } from "./Badge.js";

type Event = Pick<Entry, "event_type" | "payload">;

/** The four predicates of this service: their badges, and in what role the signer speaks. */
const KNOWN: ReadonlyMap<string, readonly [label: string, role: string]> = new Map([
  ["authorship", ["Authorship", "as author"]],
  ["editorial_review", ["Editorial review", "as editor"]],
  ["peer_review", ["Peer review", "as peer reviewer"]],
  ["publication", ["Publication", "as publisher"]],
]);

/** Of a host, the end tells to whom it belongs. */
const HOST_CHARACTERS = 30;
/** Characters of the name of a kind that tell it from a word in a title. */
const LEAST_NAME = 3;

/**
 * The short type of one of this service's own predicates; undefined for any other, however similar. Published files do not say
 * which are its own. There the payload does, which has a short type only where the service gave it its predicate.
 */
function knownType({ event_type, payload }: Event): string | undefined {
  if (predicateBase !== null) return [...PREDICATE_PATHS].find(([, path]) => event_type === predicateBase + path)?.[0];
  const type = payload?.attestation_type;
  return typeof type === "string" && PREDICATE_PATHS.has(type) && isPredicateOf(event_type, type) ? type : undefined;
}

/** The type of an event, for a badge. What is not known is shown as the host that defines it, or in quotes. */
export function eventLabel(event: Event): { readonly label: string; readonly tone: Tone } {
  const { event_type } = event;
  if (isEventType(event_type)) return EVENT_KINDS[event_type];
  const known = KNOWN.get(knownType(event) ?? "");
  if (known) return { label: known[0], tone: ATTESTATION_KIND.tone };
  return { label: hostOf(event_type) ?? `“${shownText(event_type)}”`, tone: "neutral" };
}

/** The kinds of events whose names have this text, with the event types by which they are listed. */
export function kindsNamed(text: string): readonly { readonly label: string; readonly eventType: string }[] {
  const sought = text.trim().toLowerCase();
  if (sought.length < LEAST_NAME) return [];
  const kinds = EVENT_TYPES.map((eventType) => ({
    label: EVENT_KINDS[eventType].label as string,
    eventType: eventType as string,
  }));
  const predicates = [...KNOWN].flatMap(([type, [label]]) => {
    const path = PREDICATE_PATHS.get(type);
    return predicateBase === null || path === undefined ? [] : [{ label, eventType: predicateBase + path }];
  });
  return [...kinds, ...predicates].filter(
    ({ label, eventType }) => label.toLowerCase().includes(sought) || eventType.toLowerCase() === sought,
  );
}

/** The host of a predicate, in ASCII as browsers show it; its end if it is long. */
function hostOf(eventType: string): string | undefined {
  if (!isPredicate(eventType) || !URL.canParse(eventType)) return undefined;
  const { host } = new URL(eventType);
  return host.length > HOST_CHARACTERS ? `…${host.slice(-HOST_CHARACTERS)}` : host;
}

/** A part of a statement: words, a key, or a text that somebody chose. */
type Part = string | { readonly key: string; readonly name?: string | undefined } | { readonly said: string };

/** Gives the parts for a key, or for the key of a name that stands beside it; for a text; and a text itself. */
interface Read {
  key(member: string, nameMember?: string): Part;
  said(member: string): Part;
  text(member: string): string | undefined;
}

const DECIDED: Readonly<Record<string, string>> = { accept: " accepted a request", decline: " declined a request" };

/** Sentences of kinds. A kind without one is told by who did it, its name, and what it is about. */
const STATEMENTS: Readonly<Partial<Record<EventType, (read: Read) => readonly Part[]>>> = {
  key_registration: ({ key }) => [key("fingerprint", "pseudonym"), " registered a key"],
  key_succession: ({ key }) => [key("old_fingerprint"), " went on to the key ", key("fingerprint", "pseudonym")],
  key_revocation: ({ key }) => [key("fingerprint"), " revoked the key"],
  operator_key_rotation: ({ key }) => [
    "The log went from the operator key ",
    key("old_fingerprint"),
    " to ",
    key("fingerprint"),
  ],
  log_frozen: ({ said }) => ["The operator ended the log: ", said("reason")],
  log_continues: () => ["The log goes on from one that has ended"],
  endorsement_offer: ({ key }) => [
    key("endorser_key_fingerprint"),
    " offered to endorse ",
    key("endorsed_key_fingerprint"),
  ],
  endorsement_acceptance: ({ key }) => [
    key("endorser_key_fingerprint"),
    " endorsed ",
    key("endorsed_key_fingerprint"),
    ", who accepted",
  ],
  endorsement_withdrawal: ({ key }) => [
    key("endorser_key_fingerprint"),
    " no longer endorses ",
    key("endorsed_key_fingerprint"),
  ],
  acceptance_revocation: ({ key }) => [
    key("endorsed_key_fingerprint"),
    " gave up the endorsement by ",
    key("endorser_key_fingerprint"),
  ],
  endorser_revocation_alert: ({ key, said }) => [
    key("endorser_key_fingerprint"),
    " warned of ",
    key("compromised_key_fingerprint"),
    ": ",
    said("reason"),
  ],
  attestation_request: ({ key }) => [
    key("requester_fingerprint"),
    " asked ",
    key("target_fingerprint"),
    " for an attestation",
  ],
  attestation_request_response: ({ key, said, text }) => [
    key("responder_fingerprint"),
    DECIDED[text("decision") ?? ""] ?? " answered a request",
    ...(text("reason") === undefined ? [] : [": ", said("reason")]),
  ],
  request_policy: ({ key }) => [key("target_fingerprint"), " said which requests it takes"],
  encrypted_claim: () => ["Somebody recorded a claim that only the holder of its key can read"],
};

function told({ actor, label, about }: EventKind, { key, said, text }: Read): readonly Part[] {
  const subject = about.find((member) => member !== actor && text(member) !== undefined);
  return [
    ...(actor === null ? [] : [key(actor), ": "]),
    label,
    ...(subject === undefined ? [] : [", ", KEY_MEMBERS.has(subject) ? key(subject) : said(subject)]),
  ];
}

/** What an event says, as a sentence of parts: who did what to what. */
export function statementOf(event: Event & Pick<Entry, "withheld_by">): readonly Part[] {
  const { event_type, payload, withheld_by } = event;
  if (payload === null) return [`Withheld by the operator, as entry ${withheld_by} says`];
  const text = (name: string): string | undefined => {
    const value = payload[name];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const read: Read = {
    key(member, nameMember) {
      const key = text(member);
      return key === undefined
        ? "an unknown key"
        : { key, name: nameMember === undefined ? undefined : text(nameMember) };
    },
    said: (member) => ({ said: text(member) ?? "(nothing)" }),
    text,
  };
  if (isEventType(event_type)) return STATEMENTS[event_type]?.(read) ?? told(EVENT_KINDS[event_type], read);
  if (text("signer_key_fingerprint") === undefined) {
    const some = Object.values(payload).find((value): value is string => typeof value === "string");
    return some === undefined ? [`An event of the type “${shownText(event_type)}”`] : [{ said: some }];
  }
  const role =
    KNOWN.get(knownType(event) ?? "")?.[1] ?? `with the meaning that ${hostOf(event_type) ?? "others"} gave it`;
  return [read.key("signer_key_fingerprint"), " attested ", read.said("document_title"), ` ${role}`];
}
