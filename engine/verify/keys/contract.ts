/**
 * Words, messages and limits that the contract fixes and that several parts need: the registry, the schemas of requests and
 * answers, the client, the explorer. Each is defined only here.
 */

/** Algorithms of keys (docs/spec §4.1). */
export const KEY_ALGORITHMS = ["ed25519", "ecdsa-p256", "rsa-2048"] as const;
export type KeyAlgorithm = (typeof KEY_ALGORITHMS)[number];

/** Whether `value` is the name of a key algorithm. */
export const isKeyAlgorithm = (value: unknown): value is KeyAlgorithm => KEY_ALGORITHMS.some((name) => name === value);

/** The kinds of credentials: the key is in software or in hardware (docs/spec §6.4). */
export const CREDENTIAL_TYPES = ["software", "hardware"] as const;
export type CredentialType = (typeof CREDENTIAL_TYPES)[number];

/** Categories of endorsements (docs/spec §9.1). */
export const ENDORSEMENT_CATEGORIES = ["x-service:human_attestation", "x-service:institutional_endorsement"] as const;
export type EndorsementCategory = (typeof ENDORSEMENT_CATEGORIES)[number];

/** The four short attestation types, and the path of the predicate of each under the predicate base. */
export const PREDICATE_PATHS: ReadonlyMap<string, string> = new Map([
  ["authorship", "/authorship/v1"],
  ["editorial_review", "/editorial-review/v1"],
  ["peer_review", "/peer-review/v1"],
  ["publication", "/publication/v1"],
]);

/** The trust of an active key that no active endorser has alerted about, without endorsements (docs/spec §9.3). */
export const OWN_TRUST = 0.1;

/** States of an endorsement (docs/spec §9.1). */
export const ENDORSEMENT_STATUSES = [
  "offered",
  "pending_activation",
  "active",
  "expired",
  "withdrawn",
  "acceptance_revoked",
] as const;
export type EndorsementStatus = (typeof ENDORSEMENT_STATUSES)[number];

/** States of an attestation request (docs/spec §10.1). */
export const REQUEST_STATUSES = ["open", "held", "accepted", "declined"] as const;
export type RequestStatus = (typeof REQUEST_STATUSES)[number];

/** Answers to an attestation request. */
export const DECISIONS = ["accept", "decline"] as const;
export type Decision = (typeof DECISIONS)[number];

/** The possible effects of a request policy on a request that fails its predicates (docs/spec §10.3). */
export const POLICY_ACTIONS = ["allow", "decline", "hold"] as const;
export type PolicyAction = (typeof POLICY_ACTIONS)[number];

/** Kinds of inbox notifications (docs/spec §10.5). */
export const NOTIFICATION_KINDS = [
  "attestation_request",
  "attestation_request_held",
  "attestation_request_accepted",
  "attestation_request_declined",
  "webhook_ended",
] as const;
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number];

/** Why a webhook subscription ended without its owner. */
export const ENDED_REASONS = ["key-ended", "failing", "gone"] as const;
export type EndedReason = (typeof ENDED_REASONS)[number];

/** The scopes of an audit export besides `all` (docs/spec §16.4). */
export const AUDIT_SCOPES = ["keys", "attestations", "endorsements", "claims", "requests"] as const;
export type AuditScope = (typeof AUDIT_SCOPES)[number];

/** The events that webhooks report (docs/spec §16.1). */
export const WEBHOOK_EVENTS = [
  "attestation.created",
  "key.registered",
  "key.revoked",
  "endorsement.created",
  "endorsement.revoked",
] as const;
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];

/** The payload members that `GET /log/by-fingerprint` compares (docs/spec §2.6, rule 5). */
export const FINGERPRINT_MEMBERS = [
  "fingerprint",
  "old_fingerprint",
  "signer_fingerprint",
  "signer_key_fingerprint",
  "endorsed_key_fingerprint",
  "endorser_key_fingerprint",
] as const;

/** The payload members that a search term is compared with (docs/spec §2.6, rules 3 and 4). */
export const SEARCH_MEMBERS = ["document_hash", "manifest_hash", "fingerprint"] as const;

/** The payload members whose words `GET /log?title=` compares: the title of a document, the name of a key. */
export const TITLE_MEMBERS = ["document_title", "pseudonym"] as const;

/** The text that a new key signs to show that its holder agrees to succeed the old key (docs/spec §4.5). */
export const successionMessage = (oldFingerprint: string, newFingerprint: string): string =>
  `service.key.succession.v1:${oldFingerprint}:${newFingerprint}`;

/**
 * The statement that a key signs, as canonical JSON, to prove possession for its registration (docs/spec §4.7). Its
 * values are those of the request, as they are sent. An attestation that registers its key has no expiration, and may have no
 * pseudonym.
 */
export const registrationStatement = (
  fingerprint: string,
  pseudonym: string | null,
  expiration_date: string | null,
) => ({
  action: "service.key.register.v1",
  expiration_date,
  fingerprint,
  pseudonym,
});

/**
 * The statement that a key signs, as canonical JSON, when its holder opens an account with it. Its values are those of
 * the request, as they are sent. The log never contains such a signature, so nobody can take one from there.
 */
export const accountStatement = (display_name: string, email: string, key_fingerprint: string) => ({
  action: "service.user.create.v1",
  display_name,
  email,
  key_fingerprint,
});

/**
 * The statement that the issuing key signs, as canonical JSON, to add a key to its account (docs/spec §6.3).
 */
export const enrolmentStatement = (challenge_id: string, issuing_fingerprint: string, key_fingerprint: string) => ({
  action: "service.credential.enroll.v1",
  challenge_id,
  issuing_fingerprint,
  key_fingerprint,
});

// The limits of what requests carry, each written once: the checks refuse what is beyond, and the schemas of requests show it.
// Characters are code points.

/** The least and the greatest number of characters of a text. */
export interface TextLimits {
  readonly min: number;
  readonly max: number;
}

/** Of a document, a composite and its parts. */
export const MAX_TITLE_CHARACTERS = 500;
export const TITLE: TextLimits = { min: 1, max: MAX_TITLE_CHARACTERS };
export const ROLE: TextLimits = { min: 1, max: 100 };
export const MAX_PARTS = 1000;
/** The log takes over tags within these; the offline verifier must find exactly those. */
export const MAX_TAGS = 32;
export const MAX_TAG_CHARACTERS = 64;

/** Each attestation of a manifest costs a verification, and signs everything before it. */
export const MAX_ATTESTATIONS = 256;
export const ATTESTATION_ID: TextLimits = { min: 1, max: 128 };
/** A short type or the URL of a predicate. */
export const ATTESTATION_TYPE: TextLimits = { min: 1, max: 512 };
/** The signer's statement of intent, or what the requester of an attestation says. */
export const STATEMENT: TextLimits = { min: 0, max: 4096 };

/** A public key in PEM: larger than every accepted one (an RSA key of 8192 bits takes 1.5 KB). */
export const MAX_PEM_CHARACTERS = 4096;
/** In its normal form, NFC, as the next two. */
export const PSEUDONYM: TextLimits = { min: 1, max: 200 };
export const DISPLAY_NAME: TextLimits = { min: 1, max: 100 };
export const DEVICE_LABEL: TextLimits = { min: 1, max: 100 };
/** RFC 5321 §4.5.3.1: the path of 256 octets includes two angle brackets. */
export const MAX_EMAIL_OCTETS = 254;
/** In its normal form, NFKC. */
export const PASSWORD: TextLimits = { min: 8, max: 1024 };
/** A text that only names a key or a challenge. */
export const NAMING: TextLimits = { min: 1, max: 256 };

/** The id of a challenge has at most as many. */
export const MAX_CHALLENGE_ID_CHARACTERS = 184;

/** Of an endorsement, its end or an alert. */
export const NOTE: TextLimits = { min: 1, max: 1000 };
export const EVIDENCE: TextLimits = { min: 0, max: 5000 };
/** UTF-8 bytes of canonical JSON, as the next two. */
export const MAX_METADATA_BYTES = 16 * 1024;
export const MAX_CLAIMS_BYTES = 64 * 1024;
export const MAX_PREDICATE_BYTES = 64 * 1024;
/** Of any type; longer values are not matched against a pattern. */
export const IDENTIFIER: TextLimits = { min: 1, max: 2048 };

/** Of an attestation request. */
export const NONCE: TextLimits = { min: 1, max: 128 };
export const REASON: TextLimits = { min: 0, max: 4096 };
export const DEADLINE_DAYS = { max: 90, default: 14 };

/** Of a trust configuration: anchors of each kind, and categories with a weight. */
export const MAX_ANCHORS = 100;
export const MAX_CATEGORIES = 32;
export const CATEGORY: TextLimits = { min: 1, max: 128 };
export const MAX_HOPS = 8;
export const DEFAULT_HOPS = 4;
export const DEFAULT_DECAY = 0.5;
/** Hops from the root of the endorsement graph. */
export const MAX_GRAPH_DEPTH = 8;
export const DEFAULT_GRAPH_DEPTH = 3;

export const WEBHOOK_URL: TextLimits = { min: 1, max: 2048 };
export const WEBHOOK_SECRET: TextLimits = { min: 16, max: 256 };

/** Bytes of a decoded ciphertext, including its tag. */
export const MAX_CIPHERTEXT_BYTES = 256 * 1024;

/** What the operator says of a payload that is withheld, or of the end of the log; and the law or order behind it. */
export const OPERATOR_REASON: TextLimits = { min: 1, max: 500 };
export const BASIS: TextLimits = { min: 0, max: 200 };

/** Items on a page of a list. */
export const MAX_PER_PAGE = 200;
export const DEFAULT_PER_PAGE = 50;
