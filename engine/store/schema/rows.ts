/** The rows of every table (`schema.ts`), as they are stored. The contract says what a member means for clients. */
import type {
  CredentialType,
  EndedReason,
  EndorsementCategory,
  KeyAlgorithm,
  NotificationKind,
  PolicyAction,
  RequestStatus,
  WebhookEvent,
} from "../../verify/keys/contract.js";
/**
 * A registered key. Fingerprints are stored as the text that is served; raw bytes are used only in batches, tiles and
 * postings.
 */
export interface KeyRow {
  readonly fingerprint: string;
  readonly public_key: string;
  readonly pseudonym: string;
  readonly algorithm: KeyAlgorithm;
  /** `expired` is never stored: it follows from `expires_at` and the clock. */
  readonly status: "active" | "succeeded" | "revoked";
  readonly registered_at: string;
  readonly expires_at: string | null;
  readonly log_entry_id: number;
  readonly successor_fingerprint: string | null;
  readonly predecessor_fingerprint: string | null;
  /** The time when the status ceased to be `active`; null while it is. */
  readonly ended_at: string | null;
  /**
   * Whether an entry contains a signature by the key itself: an attestation, say, which does not cover the members above.
   */
  readonly proven: boolean;
  /**
   * Present if the key has signed the entry that its name, expiration and predecessor come from. Until then anybody may
   * have chosen them, and the first such entry replaces them.
   */
  readonly named?: true;
}

/** Facts about the log itself: one row, under the key "log". */
export interface LogMeta {
  /** Format of all tables in this file; a log of a newer format is not opened. */
  readonly format: number;
  /** Fingerprint of the key that signs the tree heads now. */
  readonly key_id: string;
  /** Fingerprint of the key that signed the first one. Present after the operator key was rotated. */
  readonly first_key_id?: string;
  /** When the log was created, in canonical form: its operator key is valid from then on. */
  readonly created_at: string;
  /**
   * The name of the log in its checkpoints, where no setting gives one: it was taken when the log was created, and never
   * changes. Absent in logs that were created without one.
   */
  readonly name?: string;
  /** Present if entries without a head follow one with a head, as in a copy that did not fetch every head. */
  readonly sparse_heads?: true;
  /**
   * Settings of a replicated log that change what it answers. A node with others would answer otherwise, so it may not
   * join. Absent in a log that was never replicated.
   */
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * In the manifest of a node's backup, and in a log that was restored from it until it is at its place in the journal or has
   * left it: entries made before would fork the log.
   */
  readonly in_journal?: true;
  /** A rebuild has begun and not ended: until it has, derived rows may have any content. */
  readonly rebuilding?: true;
  /** Present beside `rebuilding` if a migration derives the rows again. The next start of this version finishes it. */
  readonly migrating?: true;
}

/** The node that writes a replicated log. Each takeover writes it, so no two takeovers are the same record. */
export interface LeaderRow {
  /** Random, another one for each takeover. */
  readonly holder: string;
  /** Address of the node, if it has told one. */
  readonly url: string | null;
  /** When it took the lead, in canonical form, by its own clock. */
  readonly at: string;
}

/** A rotation of an operator key, as its entry tells it; what both keys sign is `rotationMessage`. */
export interface OperatorRotationRow {
  readonly entry_id: number;
  readonly timestamp: string;
  readonly old_fingerprint: string;
  readonly old_public_key: string;
  readonly fingerprint: string;
  readonly public_key: string;
  /** Number of entries before it. */
  readonly tree_size: number;
  readonly root_hash: string;
  readonly old_key_signature: string;
  readonly new_key_signature: string;
}

/**
 * An entry of imported history that does not follow the previous one like an appended entry: its id is not the next
 * one, or its timestamp is earlier. Between two seams ids are dense and timestamps ascend.
 */
export interface SeamRow {
  readonly leaf_index: number;
  /** Timestamp of the entry, in microseconds, and of the previous one; 0 before the first. */
  readonly starts_at: number;
  readonly before: number;
}

/**
 * One immutable sorted run of postings, under its id. It covers the leaf indexes [from, to) and has `count` records in
 * blocks. A run is live while its row exists; blocks without a row are left over from an interrupted merge.
 */
export interface RunRow {
  readonly level: number;
  readonly from: number;
  readonly to: number;
  readonly count: number;
  /** Bloom filter over the terms of those kinds that are often looked up when they are absent. */
  readonly bloom: Uint8Array;
  /** The first record of each block. */
  readonly fences: Uint8Array;
  /** Whether it has the words of titles, folded as this version folds them. Runs of older versions do not say so. */
  readonly folded?: boolean;
  /** Whether an older version has filed the words of titles in it, which it folded in another way. */
  readonly titled?: boolean;
  /** Whether it has the bitmaps of `run-format.ts`. Runs of older versions have none. */
  readonly mapped?: boolean;
}

/**
 * An endorsement, except everything that depends on the clock: `endorsementStatus` (`engine/registry/events/endorsements.ts`) computes
 * its status. `institutional_metadata` and `external_identifiers` are canonical JSON texts, so that the client's choice
 * of members does not affect how rows are encoded.
 */
export interface EndorsementRow {
  readonly offer_entry_id: number;
  readonly endorser_fingerprint: string;
  readonly endorsed_fingerprint: string;
  readonly category: EndorsementCategory;
  /** A date, which means its last moment in UTC, or a timestamp in canonical form. Null: without end. */
  readonly valid_until: string | null;
  readonly institutional_metadata: string | null;
  readonly external_identifiers: string | null;
  readonly offered_at: string;
  readonly accepted_at: string | null;
  readonly acceptance_entry_id: number | null;
  readonly ended_at: string | null;
  readonly end_kind: "withdrawn" | "acceptance_revoked" | null;
  readonly end_note: string | null;
}

/**
 * An endorsement as an edge, seen from one of its keys: everything that lists, trust and graph need to select and weigh
 * it.
 */
export interface EndorsementEdgeRow
  extends Pick<EndorsementRow, "category" | "valid_until" | "offered_at" | "accepted_at" | "ended_at" | "end_kind"> {
  /** The key at the other end. */
  readonly other_fingerprint: string;
  /** `institutional_metadata.name`, if it is a text. */
  readonly institution: string | null;
}

/** The relation between an endorser and an endorsed key in one category. */
export interface EndorsementPairRow {
  /** The newest offer. An older offer that is still live can only come from imported history. */
  readonly offer_entry_id: number;
  /** Whether any offer was ever accepted: only then may the endorser file alerts about the key. */
  readonly accepted: boolean;
}

/** An alert that a key is compromised. */
export interface RevocationAlertRow {
  /** Fingerprint of the key that filed it. */
  readonly endorser_fingerprint: string;
  readonly reason: string;
  readonly evidence: string | null;
  readonly filed_at: string;
}

/** An attestation request; its full content is in its entry. */
export interface RequestRow {
  /** UUID. */
  readonly request_id: string;
  readonly requester_fingerprint: string;
  readonly target_fingerprint: string;
  readonly attestation_type: string;
  /** The row does not change when the deadline passes. */
  readonly status: RequestStatus;
  /** The last moment at which it can be answered; canonical form. */
  readonly deadline: string;
  readonly created_at: string;
  readonly log_entry_id: number;
  /** The answers that count, in the order in which they came. Absent before there is one. */
  readonly responses?: readonly RequestAnswer[];
}

/** Who has answered a request, and in which entry. */
export interface RequestAnswer {
  readonly responder_fingerprint: string;
  readonly log_entry_id: number;
}
/** Each key has a list of requests for every status, and one list of all. */
export type RequestList = RequestStatus | "all";
/** Whose lists are counted: those of a target, of a requester, or of a target and a requester together. */
export type RequestCountKey = ["target" | "requester", string] | ["pair", string, string];

/** A published request policy. */
export interface PolicyRow {
  /** Canonical JSON text. */
  readonly predicates: string;
  readonly default_action_on_failure: PolicyAction;
  /** Canonical form. */
  readonly effective_from: string;
  readonly published_at: string;
  readonly log_entry_id: number;
}

/** The policies of one target that can still matter; superseded ones are only in the log. */
export interface TargetPolicies {
  /** The policy that was in force after the newest publication. */
  readonly active: PolicyRow | null;
  /** The scheduled policy, which replaces the other at its `effective_from`; that time may have come already. */
  readonly scheduled: PolicyRow | null;
}

/** A notification for the holder of a key: about an event of a request, or the end of a webhook subscription. */
export interface NotificationRow {
  readonly kind: NotificationKind;
  /** Null if it is not about a request. */
  readonly request_id: string | null;
  /** Present if it is about an answer. Absent in rows of earlier versions, whose id is that of its entry. */
  readonly responder_fingerprint?: string;
  /** Present if it is about a webhook subscription. */
  readonly webhook_id?: number;
  readonly reason?: EndedReason;
  /** Entry that it is about, if its id is another one: that id was taken. */
  readonly entry_id?: number;
  readonly created_at: string;
  readonly read: boolean;
}

/** Consumption of an hourly quota. */
export interface QuotaRow {
  /** Canonical form. */
  readonly started_at: string;
  readonly used: number;
}

/** A secret of this log, which all its threads and nodes share. */
export interface SecretRow {
  /** Random bytes, made once. */
  readonly secret: Uint8Array;
}

/** A challenge that a valid signature has used up. It is kept for as long as the challenge could be taken again. */
export interface UsedChallengeRow {
  /** Canonical form. */
  readonly used_at: string;
}

/** Bytes that were stored for some addresses. */
export interface ByteBudgetRow {
  /** For each address: its number, which is a keyed hash; when its window began, seconds since the epoch; its bytes since. */
  readonly windows: readonly number[];
}

/** One version of a key's trust configuration. */
export interface TrustConfigRow {
  readonly fingerprint: string;
  readonly status: "active" | "superseded" | "revoked";
  readonly created_at: string;
  /** Canonical JSON of a `TrustPolicy`: the client's choice of members does not affect how rows are encoded. */
  readonly policy: string;
}

/** Which trust configurations there are of a key; under the empty text: of all keys. */
export interface TrustConfigHead {
  readonly id: number;
  /** Of a key: its configuration before that one, if it has a row; absent in rows of earlier versions, too. */
  readonly earlier?: number;
  /** Of all keys: how many there are. Absent in rows of earlier versions, which removed none. */
  readonly count?: number;
  /** Of all keys: up to which id superseded rows of earlier versions were removed. */
  readonly tidied?: number;
}

/** A webhook subscription; it is active as long as its row exists. */
export interface WebhookRow {
  /** As the owner sent it. The owner may be an attacker, so it is checked again before each connection. */
  readonly url: string;
  /** `hostOf` the URL, by which subscriptions are counted. Absent in rows of earlier versions. */
  readonly host?: string;
  /** Empty: all events. */
  readonly events: readonly WebhookEvent[];
  /** The entry must name this key, canonical form; null: any. */
  readonly key_fingerprint: string | null;
  /** `sha256:` and hex; null: any. */
  readonly document_hash: string | null;
  /** The secret that signs deliveries. Never shown again, never logged. */
  readonly secret: string | null;
  /** The key that owns the subscription. */
  readonly owner_fingerprint: string;
  readonly healthy: boolean;
  /** Failed attempts since the last successful one. */
  readonly retry_count: number;
  /** No attempt before this time, canonical form; null: at any time. */
  readonly next_probe_at: string | null;
  readonly created_at: string;
  /** Seconds from the last attempt to `next_probe_at`; an hour if absent. */
  readonly probe_after_s?: number;
  /** Time of the first failed attempt since the last success; null or absent if there is none. */
  readonly failing_since?: string | null;
  /** Leaf index of the first entry that it may be about. Absent in rows of earlier versions. */
  readonly since?: number;
  /** Whether an anchor reached its key when it was made. Absent if not, and in rows of earlier versions. */
  readonly is_reached?: true;
}

/** How far the deliveries of a subscription are. */
export interface WebhookCursorRow {
  /** Every entry before this leaf index was delivered, is in the outbox, or was not selected. */
  readonly next: number;
}

/** A delivery that failed and is tried again: an entry for a subscription. */
export interface DeliveryRow {
  readonly event: WebhookEvent;
  /** Number of failed attempts. */
  readonly attempt: number;
  /** Null: as soon as possible. Canonical form. */
  readonly next_attempt_at: string | null;
  readonly created_at: string;
}

/** An external proof that an entry existed at a certain time. */
export interface AnchorRow {
  /** A detached `.ots` file. */
  readonly proof: Uint8Array;
  /** `confirmed`: at least one attestation in it names a Bitcoin block. */
  readonly status: "pending" | "confirmed";
  /** Canonical form. */
  readonly anchored_at: string;
  /** When the proof last changed. */
  readonly updated_at: string;
}

/** The number of anchors, and the highest leaf index that has one. */
export interface AnchorTotals {
  readonly newest: number;
  readonly pending: number;
  readonly confirmed: number;
}

/** The newest head that was signed on demand. Later heads never have an earlier time, even after a restart. */
export interface SignedHeadRow {
  /** Canonical form. */
  readonly timestamp: string;
}

/** The second factor of a key. */
export interface PasswordRow {
  /** argon2id in PHC string format, salt included. */
  readonly hash: string;
  /** Random, and new after each change; a session names the version under which it began. Absent in rows of earlier versions. */
  readonly version?: string;
}

/** An account. */
export interface UserRow {
  readonly id: string;
  readonly display_name: string;
  /** Never returned to other users, never logged. */
  readonly email: string;
  readonly created_at: string;
  /** argon2id of the recovery key in PHC string format; the key itself is shown once and never stored. */
  readonly recovery_hash: string;
}

/** The binding of a signing key to an account. */
export interface CredentialRow {
  readonly id: string;
  readonly user_id: string;
  readonly key_fingerprint: string;
  readonly credential_type: CredentialType;
  readonly device_label: string;
  /**
   * Id of the trusted root of the key's hardware attestation; null if there was no attestation, or no root was
   * configured.
   */
  readonly hardware_root: string | null;
  readonly status: "active" | "revoked";
  readonly created_at: string;
  readonly revoked_at: string | null;
  /**
   * True if the key itself has signed that it is on this account; otherwise its holder may move it to another account.
   * Absent in rows of earlier versions, which did not ask for the signature.
   */
  readonly confirmed?: boolean;
}

/** A payload that is withheld. */
export interface WithheldRow {
  /** Id of the entry by which the operator withholds it. */
  readonly withheld_by: number;
  /** Hash of the entry whose payload it is. */
  readonly entry_hash: string;
  /** Hash of what is shown of the payload; absent if nothing is. */
  readonly shown_hash?: string;
}
