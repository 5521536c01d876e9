/**
 * Everything that is on disk, in one place: each table, its key and its row. One LMDB environment a log, and one for its
 * postings (`posting-tables.ts`).
 *
 * Two kinds of tables. *Derived* rows follow from the entries through `apply` alone and can be rebuilt from them;
 * *private* rows (secrets, addresses, work to do) are written beside a batch in the same transaction and never enter it.
 */

import type {
  CredentialType,
  EndorsementCategory,
  KeyAlgorithm,
  NotificationKind,
  PolicyAction,
  RequestStatus,
  WebhookEvent,
} from "../verify/contract.js";

export type Key = string | number | (string | number)[];

/** Bytes of a SHA-256: of entries, of nodes, of records. */
export const HASH = 32;

/** A registered key. Fingerprints are kept as the text that is served; raw bytes are for batches, tiles and postings. */
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
  /** When the status left `active`; null while it has not. */
  readonly ended_at: string | null;
  /** Whether an entry took a signature of the key's own. While none did, whoever shows to hold it may register it anew. */
  readonly proven: boolean;
}

/** What the log knows of itself; one row, under the key "log". */
export interface LogMeta {
  /** Layout of every table in this file; a log of another layout is not opened. */
  readonly format: number;
  /** Fingerprint of the key that signs the tree heads. */
  readonly key_id: string;
  /** When the log was made, canonical form: since then its operator key speaks for it. */
  readonly created_at: string;
  /** Present when entries without a head follow one with a head, as in a copy that did not fetch every head. */
  readonly sparse_heads?: true;
  /** A rebuild has begun and not ended: derived rows may be anything until it has. */
  readonly rebuilding?: true;
}

/**
 * An entry of imported history that does not follow the one before it as appended entries do: its id is not the next one,
 * or its timestamp is earlier. From one seam to the next ids are dense and timestamps ascend.
 */
export interface SeamRow {
  readonly leaf_index: number;
  /** When the entry was made, in microseconds, and the one before it; 0 before the first. */
  readonly starts_at: number;
  readonly before: number;
}

/**
 * One immutable sorted run of postings, under its id: the leaf indexes [from, to), `count` records in blocks. A run is live
 * while its row is there; blocks without one are left-overs of an interrupted merge.
 */
export interface RunRow {
  readonly level: number;
  readonly from: number;
  readonly to: number;
  readonly count: number;
  /** Bloom filter over the terms of the kinds that are looked up to learn that they are absent. */
  readonly bloom: Uint8Array;
  /** The first record of each block. */
  readonly fences: Uint8Array;
}

/**
 * Of an endorsement, whatever does not follow from the clock: its status is `endorsementStatus` (`endorsementevents.ts`).
 * `institutional_metadata` and `external_identifiers` are canonical JSON texts: what clients choose has no say in how
 * rows are encoded.
 */
export interface EndorsementRow {
  readonly offer_entry_id: number;
  readonly endorser_fingerprint: string;
  readonly endorsed_fingerprint: string;
  readonly category: EndorsementCategory;
  /** A date, which is its last day in UTC, or a timestamp in canonical form. Null: without end. */
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

/** An endorsement as an edge seen from one of its keys: all that lists, trust and graph need to pick and to weigh it. */
export interface EndorsementEdgeRow
  extends Pick<EndorsementRow, "category" | "valid_until" | "offered_at" | "accepted_at" | "ended_at" | "end_kind"> {
  /** The key at the other end. */
  readonly other_fingerprint: string;
  /** `institutional_metadata.name`, where that is a text. */
  readonly institution: string | null;
}

/** What there is between an endorser and an endorsed key in one category. */
export interface EndorsementPairRow {
  /** The newest offer; an older one that is still live can only come from imported history. */
  readonly offer_entry_id: number;
  /** Whether any was ever accepted: who never was an endorser has no say about the key. */
  readonly accepted: boolean;
}

/** An alert that a key is compromised. */
export interface RevocationAlertRow {
  /** Who filed it. */
  readonly endorser_fingerprint: string;
  readonly reason: string;
  readonly evidence: string | null;
  readonly filed_at: string;
}

/** An attestation request; what it says in full is in its entry. */
export interface RequestRow {
  /** UUID. */
  readonly request_id: string;
  readonly requester_fingerprint: string;
  readonly target_fingerprint: string;
  readonly attestation_type: string;
  /** Nothing is stored when the deadline passes. */
  readonly status: RequestStatus;
  /** The last moment at which it may be answered; canonical form. */
  readonly deadline: string;
  readonly created_at: string;
  readonly log_entry_id: number;
  /** Entry of the answer; null while there is none. */
  readonly response_entry_id: number | null;
}
/** Requests are listed by status, and all of a key's in one list. */
export type RequestList = RequestStatus | "all";

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

/** The policies of one target that matter still; the superseded ones are in the log. */
export interface TargetPolicies {
  /** The one that was in force after the newest publication. */
  readonly active: PolicyRow | null;
  /** The one that takes its place at its `effective_from`, which may have come since. */
  readonly scheduled: PolicyRow | null;
}

/** Something that happened to a request and that a key's holder should see. */
export interface NotificationRow {
  readonly kind: NotificationKind;
  readonly request_id: string;
  readonly created_at: string;
  readonly read: boolean;
}

/** How much of a quota is used. */
export interface QuotaRow {
  /** Canonical form. */
  readonly started_at: string;
  readonly used: number;
}

/** One version of a key's trust configuration. */
export interface TrustConfigRow {
  readonly fingerprint: string;
  readonly status: "active" | "superseded" | "revoked";
  readonly created_at: string;
  /** Canonical JSON of a `TrustPolicy`: what clients choose has no say in how rows are encoded. */
  readonly policy: string;
}

/** A webhook subscription; it is active while its row is there. */
export interface WebhookRow {
  /** As its owner sent it, who may be anybody: checked again whenever it is connected to. */
  readonly url: string;
  /** `hostOf` the URL: subscriptions are counted by it. Absent in rows of earlier versions. */
  readonly host?: string;
  /** Empty: all. */
  readonly events: readonly WebhookEvent[];
  /** The entry must name this key, canonical form; null: any. */
  readonly key_fingerprint: string | null;
  /** `sha256:` and hex; null: any. */
  readonly document_hash: string | null;
  /** What deliveries are signed with. Never shown again, never logged. */
  readonly secret: string | null;
  /** The key that it belongs to. */
  readonly owner_fingerprint: string;
  readonly healthy: boolean;
  /** Failed attempts since the last one that succeeded. */
  readonly retry_count: number;
  /** When it is tried next while it is not healthy; null while it is. Canonical form. */
  readonly next_probe_at: string | null;
  readonly created_at: string;
}

/** An entry that a subscription is still to be told of. */
export interface DeliveryRow {
  readonly event: WebhookEvent;
  /** Attempts that failed. */
  readonly attempt: number;
  /** Null before the first attempt: as soon as possible. Canonical form. */
  readonly next_attempt_at: string | null;
  readonly created_at: string;
}

/** A proof from outside that an entry existed. */
export interface AnchorRow {
  /** A detached `.ots` file. */
  readonly proof: Uint8Array;
  /** `confirmed`: some attestation in it names a Bitcoin block. */
  readonly status: "pending" | "confirmed";
  /** Canonical form. */
  readonly anchored_at: string;
  /** When the proof last changed. */
  readonly updated_at: string;
}

/** How many anchors there are, and the highest leaf index that has one. */
export interface AnchorTotals {
  readonly newest: number;
  readonly pending: number;
  readonly confirmed: number;
}

/** The newest head that was signed on demand. No head is earlier that is made later, also after a restart. */
export interface SignedHeadRow {
  /** Canonical form. */
  readonly timestamp: string;
}

/** The second factor of a key. */
export interface PasswordRow {
  /** argon2id in PHC string format, salt included. */
  readonly hash: string;
  /** Drawn anew with each change; a session names the one under which it began. Absent in rows of earlier versions. */
  readonly version?: string;
}

/** An account. */
export interface UserRow {
  readonly id: string;
  readonly display_name: string;
  /** Never returned to others, never logged. */
  readonly email: string;
  readonly created_at: string;
  /** argon2id of the recovery key in PHC string format; the key itself is shown once and kept nowhere. */
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
   * Whether the key itself has signed that it is on this account. Absent in rows of earlier versions, which did not ask.
   * While it has not, its holder may take it to another account.
   */
  readonly confirmed?: boolean;
  /** Id of the root that the key's hardware attestation led to; null when there was none, or none could be asked for. */
  readonly hardware_root: string | null;
  readonly status: "active" | "revoked";
  readonly created_at: string;
  readonly revoked_at: string | null;
}

/** Table name → key and row of every table that holds msgpackr records. */
export interface Tables {
  meta: { key: string; row: LogMeta };
  /** By entry id. */
  seams: { key: number; row: SeamRow };
  /** By fingerprint. */
  keys: { key: string; row: KeyRow };
  /** By the entry id of the offer. */
  endorsements: { key: number; row: EndorsementRow };
  /** By [endorser's fingerprint, entry id of the offer]. */
  endorsementsByEndorser: { key: [string, number]; row: EndorsementEdgeRow };
  /** By [endorsed fingerprint, entry id of the offer]. */
  endorsementsByEndorsed: { key: [string, number]; row: EndorsementEdgeRow };
  /** By [endorser's fingerprint, endorsed fingerprint, category]. */
  endorsementPairs: { key: [string, string, string]; row: EndorsementPairRow };
  /** By [compromised fingerprint, entry id of the alert]. */
  revocationAlerts: { key: [string, number]; row: RevocationAlertRow };
  /** By request id. */
  requests: { key: string; row: RequestRow };
  /** By [target's fingerprint, list, entry id]. */
  requestsByTarget: { key: [string, RequestList, number]; row: { readonly request_id: string } };
  /** By [requester's fingerprint, list, entry id]. */
  requestsByRequester: { key: [string, RequestList, number]; row: { readonly request_id: string } };
  /** By [role, fingerprint]: how long each list is. */
  requestCounts: { key: ["target" | "requester", string]; row: Readonly<Record<RequestList, number>> };
  /** By [requester's fingerprint, SHA-256 of the nonce in hex]: LMDB's keys are short, and nonces may hold anything. */
  requestNonces: { key: [string, string]; row: { readonly request_id: string } };
  /** By target's fingerprint. */
  policies: { key: string; row: TargetPolicies };
  /** By [key fingerprint, id of the entry that it tells of]. */
  notifications: { key: [string, number]; row: NotificationRow };
  /** By key fingerprint: how many notifications it has. */
  inboxes: { key: string; row: { readonly count: number } };
  /** By [what is counted, key fingerprint]. */
  quotas: { key: ["attestation-request" | "request-policy" | "claim-bytes", string]; row: QuotaRow };
  /** By webhook id. */
  webhooks: { key: number; row: WebhookRow };
  /** By [webhook id, entry id]. */
  outbox: { key: [number, number]; row: DeliveryRow };
  /** By webhook id: how many rows it has in the outbox; no row for none. */
  outboxCounts: { key: number; row: { readonly count: number } };
  /** By what is counted: the last id given out, so that none is given twice. */
  counters: { key: "webhook"; row: { readonly last: number } };
  /** By leaf index: what is served as `ots_proof`, the one thing about an entry that changes later. */
  anchors: { key: number; row: AnchorRow };
  /** By leaf index: the anchors of which more is expected. */
  anchorWork: { key: number; row: Pick<AnchorRow, "status" | "anchored_at"> };
  /** One row, under the key "log". */
  anchorTotals: { key: string; row: AnchorTotals };
  /** One row, under the key "log". */
  signedHeads: { key: string; row: SignedHeadRow };
  /** By key fingerprint. */
  passwords: { key: string; row: PasswordRow };
  /** By user id. */
  users: { key: string; row: UserRow };
  /** By case-folded display name: the user's id. Names are unique without regard to case. */
  userNames: { key: string; row: { readonly user_id: string } };
  /** By [user id, credential id]. */
  credentials: { key: [string, string]; row: CredentialRow };
  /** By id, from 1 on without a gap. */
  trustConfigs: { key: number; row: TrustConfigRow };
  /** By key fingerprint: its newest trust configuration. Under the empty text: the newest of all. */
  trustConfigHeads: { key: string; row: { readonly id: number } };
  /** By key fingerprint: where its credential is. A key is on one account at most. */
  credentialKeys: { key: string; row: { readonly user_id: string; readonly credential_id: string } };
}
export type TableName = keyof Tables;
export type KeyOf<T extends TableName> = Tables[T]["key"];
export type RowOf<T extends TableName> = Tables[T]["row"];

/** Which tables follow from the entries; `rebuild` empties and refills exactly these. */
export const DERIVED_TABLES = [
  "seams",
  "keys",
  "endorsements",
  "endorsementsByEndorser",
  "endorsementsByEndorsed",
  "endorsementPairs",
  "revocationAlerts",
  "requests",
  "requestsByTarget",
  "requestsByRequester",
  "requestCounts",
  "requestNonces",
  "policies",
] as const satisfies readonly TableName[];
export type DerivedTable = (typeof DERIVED_TABLES)[number];

/** Which tables do not: they are copied, or lost. */
export const PRIVATE_TABLES = [
  "anchors",
  "anchorWork",
  "anchorTotals",
  "signedHeads",
  "trustConfigs",
  "trustConfigHeads",
  "passwords",
  "users",
  "userNames",
  "credentials",
  "credentialKeys",
  "notifications",
  "inboxes",
  "quotas",
  "webhooks",
  "outbox",
  "outboxCounts",
  "counters",
] as const satisfies readonly TableName[];
export type PrivateTable = (typeof PRIVATE_TABLES)[number];

/** Tables whose rows follow from no entry, so that a record of the journal has to carry them. */
export type RecordedTable = PrivateTable | "meta";
const RECORDED: ReadonlySet<string> = new Set<RecordedTable>(["meta", ...PRIVATE_TABLES]);
export const isRecorded = (table: string): table is RecordedTable => RECORDED.has(table);

export const RECORD_TABLES = ["meta", ...DERIVED_TABLES, ...PRIVATE_TABLES] as const satisfies readonly TableName[];

/**
 * Tables of plain bytes:
 * - `batches`: leaf index of the first entry → batch (`batch.ts`). The row that makes an append exist.
 * - `tiles`: [tree version, tile level, tile index] → up to 256 hashes of 32 bytes. Level-0 tiles are written when full,
 *   the newest tile of each higher level whenever it grows (once in 256 appends), so that a restart reads, not hashes.
 * - `journal`: one row, under the key "position" (`position.ts`). Every commit is made under the condition that it is still
 *   what the writer knows.
 */
export const BYTE_TABLES = ["batches", "tiles", "journal"] as const;

/**
 * 2: every commit moves the journal's position. A version that knows none would commit beside it, and refuses.
 * 3: rows of keys say whether the key is proven.
 */
export const FORMAT = 3;

/**
 * What a posting is about. The number is on disk: never reuse one.
 * `prefix` kinds keep the first 16 bytes of the term itself, in sort order, so that a prefix is a range;
 * the others keep 16 bytes of a SHA-256 of the term, which tells terms apart: two that agree cost 2^64 work to find.
 */
export const POSTING = {
  eventType: 1,
  tag: 2,
  /** An `entry_hashes` digest, hex-decoded (prefix). */
  digest: 3,
  /** A searchable payload field stored as bare hex, hex-decoded (prefix). */
  bareHash: 4,
  /** The same stored as `sha256:` + hex, hex-decoded after the colon (prefix). */
  prefixedHash: 5,
  /** The same stored as any other text, case-folded UTF-8 (prefix). */
  fieldText: 6,
  /** A key the entry names in one of the fields of `by-fingerprint`. */
  fingerprint: 7,
  document: 8,
  /** Signer, manifest and type of an attestation: what makes a submission the same one again. */
  sameAttestation: 9,
  attestationId: 10,
  /** Every entry that created a key, in order. */
  keyCreated: 11,
  /** One, two or three neighbouring characters of a case-folded pseudonym, for substring search. */
  pseudonymGram: 12,
  /** The lookup key of an encrypted claim. */
  claimLookup: 13,
  /** Every attestation, whatever its predicate. */
  attestation: 14,
} as const;
export type PostingKind = (typeof POSTING)[keyof typeof POSTING];

/** Kinds asked about mostly to learn that there is none; their terms enter each run's Bloom filter. */
export const BLOOM_KINDS: ReadonlySet<number> = new Set([POSTING.sameAttestation, POSTING.attestationId]);
