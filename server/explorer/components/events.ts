/** Log events in words. Event types and payloads are what others chose: anything may be missing or of another type. */
import type { Entry } from "../../../engine/verify/index.js";
import type { Tone } from "./Badge.js";
import { shortened } from "./Hash.js";

const LABELS: Readonly<Record<string, readonly [label: string, tone: Tone]>> = {
  key_registration: ["Key registered", "info"],
  key_succession: ["Key replaced", "info"],
  key_revocation: ["Key revoked", "bad"],
  endorsement_offer: ["Endorsement offered", "neutral"],
  endorsement_acceptance: ["Endorsement accepted", "neutral"],
  endorsement_withdrawal: ["Endorsement withdrawn", "warning"],
  acceptance_revocation: ["Acceptance revoked", "warning"],
  endorser_revocation_alert: ["Compromise alert", "bad"],
  attestation_request: ["Attestation requested", "neutral"],
  attestation_request_response: ["Request answered", "neutral"],
  request_policy: ["Request policy", "neutral"],
  encrypted_claim: ["Encrypted claim", "neutral"],
};

/** Event types that the service itself writes, for those who filter by them. */
export const EVENT_TYPES: readonly string[] = Object.keys(LABELS);

/** `https://…/editorial-review/v1` is an attestation of the type "editorial review". */
const PREDICATE = /^https?:\/\/.*?\/([^/]+)(?:\/v\d+)?$/;

/** The type of an event, for a badge. */
export function eventLabel({ event_type, payload }: Pick<Entry, "event_type" | "payload">): {
  readonly label: string;
  readonly tone: Tone;
} {
  const known = Object.hasOwn(LABELS, event_type) ? LABELS[event_type] : undefined;
  if (known) return { label: known[0], tone: known[1] };
  const predicate = PREDICATE.exec(event_type)?.[1];
  if (predicate && typeof payload.attestation_id === "string")
    return { label: capitalised(predicate.replaceAll(/[-_]+/g, " ")), tone: "good" };
  return { label: predicate ?? event_type, tone: "neutral" };
}

/** What an entry is about, in one line of text. */
export function eventSubject({ event_type, payload }: Pick<Entry, "event_type" | "payload">): string {
  const text = (name: string): string | undefined => {
    const value = payload[name];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const key = (name: string): string => shortened(text(name) ?? "an unknown key", 6);
  switch (event_type) {
    case "key_succession":
      return `${key("old_fingerprint")} is followed by ${key("fingerprint")}`;
    case "key_revocation":
      return key("fingerprint");
    case "endorsement_offer":
    case "endorsement_acceptance":
    case "endorsement_withdrawal":
    case "acceptance_revocation":
      return `${key("endorser_key_fingerprint")} for ${key("endorsed_key_fingerprint")}`;
    case "endorser_revocation_alert":
      return `${key("compromised_key_fingerprint")}: ${text("reason") ?? "no reason given"}`;
    case "encrypted_claim":
      return "Only who has the key can read it";
  }
  const named = text("document_title") ?? text("pseudonym") ?? text("intent_statement");
  return named ?? Object.values(payload).find((value): value is string => typeof value === "string") ?? "";
}

/** Members of payloads that name keys, and those that name documents. */
export const KEY_MEMBERS: ReadonlySet<string> = new Set([
  "fingerprint",
  "old_fingerprint",
  "signer_fingerprint",
  "signer_key_fingerprint",
  "endorsed_key_fingerprint",
  "endorser_key_fingerprint",
  "compromised_key_fingerprint",
  "requester_fingerprint",
  "target_fingerprint",
  "responder_fingerprint",
]);
export const DOCUMENT_MEMBERS: ReadonlySet<string> = new Set(["document_hash", "manifest_hash"]);

const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
