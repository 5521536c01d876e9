/** Describes log events in words. Others choose event types and payloads: members may be missing or of another type. */
import type { Entry } from "../../../engine/verify/index.js";
import { ATTESTATION_KIND, EVENT_KINDS, type EventType, isEventType, kindOf } from "../../../engine/verify/kinds.js";
import type { Tone } from "./Badge.js";
import { shortened } from "./Hash.js";

/** `https://…/editorial-review/v1` is an attestation of the type "editorial review". */
const PREDICATE = /^https?:\/\/.*?\/([^/]+)(?:\/v\d+)?$/;

/** The type of an event, for a badge. */
export function eventLabel({ event_type, payload }: Pick<Entry, "event_type" | "payload">): {
  readonly label: string;
  readonly tone: Tone;
} {
  if (isEventType(event_type)) return EVENT_KINDS[event_type];
  const predicate = PREDICATE.exec(event_type)?.[1];
  if (predicate && typeof payload.attestation_id === "string")
    return { label: capitalised(predicate.replaceAll(/[-_]+/g, " ")), tone: ATTESTATION_KIND.tone };
  return { label: predicate ?? event_type, tone: "neutral" };
}

/** Sentences for kinds that name two keys, or no member that would help a reader. */
type Read = (member: string) => string | undefined;
const SUBJECTS: Partial<Record<EventType, (key: Read, text: Read) => string>> = {
  operator_key_rotation: (key) => `${key("old_fingerprint")} is followed by ${key("fingerprint")}`,
  key_succession: (key) => `${key("old_fingerprint")} is followed by ${key("fingerprint")}`,
  endorsement_offer: parties,
  endorsement_acceptance: parties,
  endorsement_withdrawal: parties,
  acceptance_revocation: parties,
  endorser_revocation_alert: (key, text) =>
    `${key("compromised_key_fingerprint")}: ${text("reason") ?? "no reason given"}`,
  encrypted_claim: () => "Only a holder of the key can read it",
};

function parties(key: Read): string {
  return `${key("endorser_key_fingerprint")} for ${key("endorsed_key_fingerprint")}`;
}

/** The subject of an entry, in one line of text. */
export function eventSubject({ event_type, payload }: Pick<Entry, "event_type" | "payload">): string {
  const text = (name: string): string | undefined => {
    const value = payload[name];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const key = (name: string): string => shortened(text(name) ?? "an unknown key", 6);
  const sentence = isEventType(event_type) ? SUBJECTS[event_type] : undefined;
  if (sentence) return sentence(key, text);
  const kind = kindOf(event_type);
  const member = kind?.about.find((name) => text(name) !== undefined);
  if (member !== undefined) return kind?.keys.includes(member) ? key(member) : text(member)!;
  return Object.values(payload).find((value): value is string => typeof value === "string") ?? "";
}

const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
