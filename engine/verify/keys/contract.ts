/**
 * Words and messages that the contract fixes and that several parts need: the registry, the schemas of requests and
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
