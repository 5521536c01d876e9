/**
 * The kinds of events that a log records, in one table. Everything else gets its knowledge about kinds from here. If a
 * kind lacks a part, the code does not compile: `EventType` is the type of the table's keys, and other tables by event
 * type are `Record<EventType, …>`.
 */

import {
  anyObject,
  anyText,
  arrayOf,
  hexHash,
  type JsonObject,
  type MembersOf,
  objectOf,
  oneOf,
  orNull,
  positiveInteger,
  type Shape,
} from "../json/shape.js";
import {
  type AuditScope,
  DECISIONS,
  ENDORSEMENT_CATEGORIES,
  KEY_ALGORITHMS,
  POLICY_ACTIONS,
  type WebhookEvent,
} from "../keys/contract.js";
import { TREE_HEAD } from "../tree/treehead.js";
import { ATTESTED_FURTHER, ATTESTED_MEMBERS } from "./attested.js";

type Members = Readonly<Record<string, Shape>>;

/** The properties of a kind of event. */
export interface EventKind {
  /**
   * Members of the payload that the service writes, all of them present. Imported history may lack some. Events of the
   * service's own types also name their type in the payload (`eventOf`).
   */
  readonly payload: Members;
  /** Members that hold the fingerprint of a key. */
  readonly keys: readonly string[];
  /**
   * The member that names the key whose signature or session the event required. Null if the event required none, or
   * does not name it.
   */
  readonly actor: string | null;
  /** Members of the payload that not every entry has: those of earlier versions lack them, or they do not always apply. */
  readonly added?: readonly string[];
  /** Whether the event changes endorsements, or the standing of a key that has some. */
  readonly changesGraph: boolean;
  readonly scope: AuditScope;
  /** The name of the event in webhooks; null if webhooks do not report it. */
  readonly webhook: WebhookEvent | null;
  /** A name for people. */
  readonly label: string;
  /** How people should see the event: as good news, bad news, or neither. */
  readonly tone: "neutral" | "info" | "good" | "warning" | "bad";
  /** Members that may describe the subject. The first of them that is a text is used. */
  readonly about: readonly string[];
}

interface KindOf<M extends Members> extends EventKind {
  readonly payload: M;
  readonly keys: readonly (keyof M & string)[];
  readonly actor: (keyof M & string) | null;
  readonly added?: readonly (keyof M & string)[];
  readonly about: readonly (keyof M & string)[];
}

/** What kinds have in common that do not say otherwise: they name no key, and webhooks do not report them. */
const COMMON = { keys: [], actor: null, changesGraph: false, webhook: null, tone: "neutral" } as const;

/** A kind, with what is common. `keys` and `about` must name members of `payload`. */
const kind = <M extends Members>(
  described: Omit<KindOf<M>, keyof typeof COMMON> & Partial<Pick<KindOf<M>, keyof typeof COMMON>>,
): KindOf<M> => ({ ...COMMON, ...described });

const KEY = {
  fingerprint: anyText,
  public_key: anyText,
  pseudonym: anyText,
  key_algorithm: oneOf(...KEY_ALGORITHMS),
  expiration_date: orNull(anyText),
};

const ENDORSEMENT = {
  endorser_key_fingerprint: anyText,
  endorsed_key_fingerprint: anyText,
  category: oneOf(...ENDORSEMENT_CATEGORIES),
  valid_until: orNull(anyText),
  institutional_metadata: orNull(anyObject),
  external_identifiers: orNull(arrayOf(objectOf({ type: anyText, value: anyText }))),
};
/** An event that accepts or ends an endorsement repeats the offer and names its entry. */
const ENDORSEMENT_CHANGE = { ...ENDORSEMENT, offer_entry_id: positiveInteger, note: orNull(anyText) };
const OF_ENDORSEMENTS = {
  keys: ["endorser_key_fingerprint", "endorsed_key_fingerprint"],
  changesGraph: true,
  scope: "endorsements",
  about: ["endorsed_key_fingerprint"],
} as const;

const OF_REPLACEMENTS = {
  keys: ["old_fingerprint", "fingerprint"],
  actor: "old_fingerprint",
  changesGraph: true,
  scope: "keys",
} as const;

/** Every kind with a single event type. The event type of attestations is their predicate; see `ATTESTATION_KIND`. */
export const EVENT_KINDS = {
  key_registration: kind({
    // The signature proves possession of the key; null if nobody has proven it.
    payload: { ...KEY, possession_signature: orNull(anyText) },
    keys: ["fingerprint"],
    added: ["possession_signature"],
    // The graph stays: a new key has no endorsements, and a busy log has many registrations.
    scope: "keys",
    webhook: "key.registered",
    label: "Key registered",
    tone: "info",
    about: ["pseudonym"],
  }),
  key_succession: kind({
    // The signature is by the new key; null if nobody has proven to hold it.
    payload: { old_fingerprint: anyText, ...KEY, new_key_signature: orNull(anyText) },
    ...OF_REPLACEMENTS,
    added: ["new_key_signature"],
    label: "Key replaced",
    tone: "info",
    about: ["old_fingerprint"],
  }),
  key_revocation: kind({
    payload: { fingerprint: anyText },
    keys: ["fingerprint"],
    actor: "fingerprint",
    changesGraph: true,
    scope: "keys",
    webhook: "key.revoked",
    label: "Key revoked",
    tone: "bad",
    about: ["fingerprint"],
  }),
  operator_key_rotation: kind({
    // Both keys are here whole, so that the log says of itself who signed it. What they sign: `rotationMessage`.
    payload: {
      old_fingerprint: anyText,
      old_public_key: anyText,
      fingerprint: anyText,
      public_key: anyText,
      key_algorithm: oneOf(...KEY_ALGORITHMS),
      tree_size: positiveInteger,
      root_hash: hexHash,
      old_key_signature: anyText,
      new_key_signature: anyText,
    },
    ...OF_REPLACEMENTS,
    label: "Operator key replaced",
    tone: "warning",
    about: ["fingerprint"],
  }),
  log_frozen: kind({
    // The last entry that a log can have. The head of its size is the operator's signature over it.
    payload: { successor: orNull(objectOf({ url: anyText, vkey: anyText })), reason: anyText },
    scope: "keys",
    label: "Log frozen",
    tone: "warning",
    about: ["reason"],
  }),
  log_continues: kind({
    // The first entry of a log that goes on from a frozen one: the last head of that, and the key that signed it.
    payload: { predecessor: objectOf({ url: anyText, operator_key: anyText, tree_head: TREE_HEAD }) },
    scope: "keys",
    label: "Log continued",
    tone: "info",
    about: [],
  }),
  payload_withheld: kind({
    // By the operator. `withheld.ts` says what follows from it, and what it has if it withholds a name alone.
    payload: {
      entry_id: positiveInteger,
      entry_hash: hexHash,
      payload_hash: hexHash,
      reason: anyText,
      basis: orNull(anyText),
    },
    // Graphs show names.
    changesGraph: true,
    scope: "keys",
    label: "Payload withheld",
    tone: "warning",
    about: ["reason"],
  }),
  endorsement_offer: kind({
    payload: ENDORSEMENT,
    ...OF_ENDORSEMENTS,
    actor: "endorser_key_fingerprint",
    label: "Endorsement offered",
  }),
  endorsement_acceptance: kind({
    payload: ENDORSEMENT_CHANGE,
    ...OF_ENDORSEMENTS,
    actor: "endorsed_key_fingerprint",
    webhook: "endorsement.created",
    label: "Endorsement accepted",
  }),
  endorsement_withdrawal: kind({
    payload: ENDORSEMENT_CHANGE,
    ...OF_ENDORSEMENTS,
    actor: "endorser_key_fingerprint",
    webhook: "endorsement.revoked",
    label: "Endorsement withdrawn",
    tone: "warning",
  }),
  acceptance_revocation: kind({
    payload: ENDORSEMENT_CHANGE,
    ...OF_ENDORSEMENTS,
    actor: "endorsed_key_fingerprint",
    webhook: "endorsement.revoked",
    label: "Acceptance revoked",
    tone: "warning",
  }),
  endorser_revocation_alert: kind({
    payload: {
      endorser_key_fingerprint: anyText,
      compromised_key_fingerprint: anyText,
      reason: anyText,
      evidence: orNull(anyText),
    },
    keys: ["endorser_key_fingerprint", "compromised_key_fingerprint"],
    actor: "endorser_key_fingerprint",
    changesGraph: true,
    scope: "endorsements",
    label: "Compromise alert",
    tone: "bad",
    about: ["reason"],
  }),
  attestation_request: kind({
    payload: {
      request_id: anyText,
      requester_fingerprint: anyText,
      target_fingerprint: anyText,
      attestation_type: anyText,
      nonce: anyText,
      intent_statement: orNull(anyText),
      claims: anyObject,
      deadline: anyText,
      status: oneOf("open", "held"),
      policy_entry_id: orNull(positiveInteger),
    },
    keys: ["requester_fingerprint", "target_fingerprint"],
    actor: "requester_fingerprint",
    scope: "requests",
    label: "Attestation requested",
    about: ["intent_statement", "attestation_type"],
  }),
  attestation_request_response: kind({
    payload: {
      request_id: anyText,
      responder_fingerprint: anyText,
      decision: oneOf(...DECISIONS),
      attestation_id: orNull(anyText),
      reason: orNull(anyText),
    },
    keys: ["responder_fingerprint"],
    actor: "responder_fingerprint",
    scope: "requests",
    label: "Request answered",
    about: ["reason", "decision"],
  }),
  request_policy: kind({
    payload: {
      target_fingerprint: anyText,
      predicates: anyObject,
      default_action_on_failure: oneOf(...POLICY_ACTIONS),
      effective_from: anyText,
    },
    keys: ["target_fingerprint"],
    actor: "target_fingerprint",
    scope: "requests",
    label: "Request policy",
    about: ["target_fingerprint"],
  }),
  encrypted_claim: kind({
    payload: {
      commitment_alg: anyText,
      ephemeral_public_key: anyText,
      nonce: anyText,
      ciphertext: anyText,
      commitment: anyText,
      lookup_key: anyText,
    },
    // No actor: the log does not contain who posts a claim.
    scope: "claims",
    label: "Encrypted claim",
    about: [],
  }),
} as const;

/** The kind of every event whose type is a predicate URL. */
export const ATTESTATION_KIND = kind({
  payload: { ...ATTESTED_MEMBERS, ...ATTESTED_FURTHER },
  added: Object.keys(ATTESTED_FURTHER) as (keyof typeof ATTESTED_FURTHER)[],
  keys: ["signer_key_fingerprint"],
  actor: "signer_key_fingerprint",
  scope: "attestations",
  webhook: "attestation.created",
  label: "Attestation",
  tone: "good",
  about: ["document_title"],
});

/** Event types that the service itself writes; attestations have predicate URLs. */
export type EventType = keyof typeof EVENT_KINDS;
export const EVENT_TYPES = Object.keys(EVENT_KINDS) as readonly EventType[];
/** The payload that the service writes for an event of this type. */
export type PayloadOf<T extends EventType> = MembersOf<(typeof EVENT_KINDS)[T]["payload"]>;

/** The members of an event that its kind depends on. */
export interface KindedEvent {
  readonly event_type: string;
  readonly payload: JsonObject;
}

const PREDICATE = /^https?:\/\//;

/** Whether an event type is a predicate URL, as all attestations have. */
export const isPredicate = (eventType: string): boolean => PREDICATE.test(eventType);

/** Whether `value` is an event type that the service itself writes. */
export const isEventType = (value: string): value is EventType => Object.hasOwn(EVENT_KINDS, value);

/** The kind of an event; undefined for a type that this version does not know. Imported history may have such types. */
export function kindOf(eventType: string): EventKind | undefined {
  if (isEventType(eventType)) return EVENT_KINDS[eventType];
  return isPredicate(eventType) ? ATTESTATION_KIND : undefined;
}

/**
 * An event of one of the service's own kinds, ready to be appended. The payload names the type, because no hash covers
 * the `event_type` of an entry, and anybody who passes the entry on could change it.
 */
export function eventOf<T extends EventType>(
  event_type: T,
  payload: PayloadOf<T>,
): { readonly event_type: T; readonly payload: PayloadOf<T> & { readonly event_type: T } & JsonObject } {
  return { event_type, payload: { event_type, ...payload } };
}

/** The reason why a payload does not fit its kind, as a sentence; undefined if it fits. Further members are allowed. */
export function payloadMisfit({ event_type, payload }: KindedEvent): string | undefined {
  const found = kindOf(event_type);
  if (!found) return undefined;
  const isAdded = ([member]: readonly [string, Shape]) => found.added?.includes(member) === true;
  const members = Object.entries(found.payload);
  const required = Object.fromEntries(members.filter((member) => !isAdded(member)));
  return objectOf(required, Object.fromEntries(members.filter(isAdded)), "ignored")(payload, "");
}

/** The event types of a scope. Attestations have no complete list of types, so their scope gives none. */
export const typesInScope = (scope: AuditScope): readonly EventType[] =>
  EVENT_TYPES.filter((type) => EVENT_KINDS[type].scope === scope);

/** Members of payloads that name a key, in any kind. `signer_fingerprint` occurs in imported history. */
export const KEY_MEMBERS: ReadonlySet<string> = /* @__PURE__ */ new Set(
  /* @__PURE__ */ [...Object.values(EVENT_KINDS), ATTESTATION_KIND, { keys: ["signer_fingerprint"] }].flatMap(
    ({ keys }): readonly string[] => keys,
  ),
);
