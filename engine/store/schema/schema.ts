/**
 * Everything on disk, in one place: each table with its key and its row. A log has one LMDB environment, and a second
 * one for its postings (`postings/tables.ts`).
 *
 * There are two kinds of tables. *Derived* rows follow from the entries through `apply` alone and can be rebuilt from
 * them. *Private* rows (secrets, addresses, work to do) are written in the same transaction as a batch and are never
 * part of it.
 */
import type {
  AnchorRow,
  AnchorTotals,
  ByteBudgetRow,
  CredentialRow,
  DeliveryRow,
  EndorsementEdgeRow,
  EndorsementPairRow,
  EndorsementRow,
  KeyRow,
  LeaderRow,
  LogMeta,
  NotificationRow,
  OperatorRotationRow,
  PasswordRow,
  QuotaRow,
  RequestCountKey,
  RequestList,
  RequestRow,
  RevocationAlertRow,
  SeamRow,
  SecretRow,
  SignedHeadRow,
  TargetPolicies,
  TrustConfigHead,
  TrustConfigRow,
  UsedChallengeRow,
  UserRow,
  WebhookCursorRow,
  WebhookRow,
  WithheldRow,
} from "./rows.js";

export type Key = string | number | (string | number)[];

/** Bytes of a SHA-256: of entries, of nodes, of records. */
export const HASH = 32;
/** Table name → key and row of every table that holds msgpackr records. */
interface Tables {
  meta: { key: string; row: LogMeta };
  /** By entry id. */
  seams: { key: number; row: SeamRow };
  /** By leaf index: every entry that records a rotation of an operator key, of this log's or of another's. */
  operatorRotations: { key: number; row: OperatorRotationRow };
  /** By id of the entry whose payload the operator withholds. */
  withheld: { key: number; row: WithheldRow };
  /** By fingerprint. */
  keys: { key: string; row: KeyRow };
  /** By the entry id of the offer. */
  endorsements: { key: number; row: EndorsementRow };
  /** By [endorser's fingerprint, entry id of the offer]. */
  endorsementsByEndorser: { key: [string, number]; row: EndorsementEdgeRow };
  /** By [endorsed fingerprint, entry id of the offer]. */
  endorsementsByEndorsed: { key: [string, number]; row: EndorsementEdgeRow };
  /**
   * By [endorsed fingerprint, entry id of the offer]: those that the endorsed key has accepted at some time. Anybody may make
   * offers to a key; what counts for it is found without them.
   */
  acceptedEndorsements: { key: [string, number]; row: EndorsementEdgeRow };
  /** By [endorser's fingerprint, endorsed fingerprint, category]. */
  endorsementPairs: { key: [string, string, string]; row: EndorsementPairRow };
  /** By [compromised fingerprint, entry id of the alert]. */
  revocationAlerts: { key: [string, number]; row: RevocationAlertRow };
  /** By [compromised fingerprint, fingerprint of the key that filed it]: the newest alert of the one about the other. */
  newestAlerts: { key: [string, string]; row: { readonly alert_entry_id: number } };
  /** By request id. */
  requests: { key: string; row: RequestRow };
  /** By [target's fingerprint, list, entry id]. */
  requestsByTarget: { key: [string, RequestList, number]; row: { readonly request_id: string } };
  /** By [requester's fingerprint, list, entry id]. */
  requestsByRequester: { key: [string, RequestList, number]; row: { readonly request_id: string } };
  /** By [target's fingerprint, requester's fingerprint, list, entry id]. */
  requestsByPair: { key: [string, string, RequestList, number]; row: { readonly request_id: string } };
  /** By [role, fingerprint], or for two keys by ["pair", target's, requester's]: the length of each list. */
  requestCounts: { key: RequestCountKey; row: Readonly<Record<RequestList, number>> };
  /** By [requester's fingerprint, SHA-256 of the nonce in hex]: LMDB's keys are short, and nonces may hold anything. */
  requestNonces: { key: [string, string]; row: { readonly request_id: string } };
  /** By target's fingerprint. */
  policies: { key: string; row: TargetPolicies };
  /** By [key fingerprint, id of the entry that the notification is about]. */
  notifications: { key: [string, number]; row: NotificationRow };
  /** By key fingerprint: how many notifications it has. */
  inboxes: { key: string; row: { readonly count: number } };
  /** By [what is counted, key fingerprint]; `webhook` by client address. */
  quotas: {
    key: [
      (
        | "attestation-request"
        | "requester"
        | "request-policy"
        | "strangers-answer"
        | "claim-bytes"
        | "trust-config"
        | "webhook"
      ),
      string,
    ];
    row: QuotaRow;
  };
  /**
   * By the lowest bits of the hash of an address, and -1 for all strangers: the bytes that were stored for them
   * (`log/write/budgets.ts`).
   */
  byteBudgets: { key: number; row: ByteBudgetRow };
  /** By webhook id. */
  webhooks: { key: number; row: WebhookRow };
  /**
   * By webhook id: how far its deliveries are. No row: as far as the walk that all subscriptions share
   * (`counters`, "webhook-walk"), or where the subscription began, if that is later.
   */
  webhookCursors: { key: number; row: WebhookCursorRow };
  /** By [webhook id, entry id]: deliveries that were tried and failed. Versions before cursors queued all others here, too. */
  outbox: { key: [number, number]; row: DeliveryRow };
  /** By webhook id: the number of its rows in the outbox; no row means 0. */
  outboxCounts: { key: number; row: { readonly count: number } };
  /**
   * `webhook`: the last id that was given out, so that no id is used twice. `webhook-walk`: the leaf index up to which
   * entries were matched with all subscriptions that have no cursor of their own.
   */
  counters: { key: "webhook" | "webhook-walk"; row: { readonly last: number } };
  /** By leaf index: the proof that is served as `ots_proof`, the only part of an entry that changes later. */
  anchors: { key: number; row: AnchorRow };
  /** By leaf index: the anchors whose proof is not complete yet. */
  anchorWork: { key: number; row: Pick<AnchorRow, "status" | "anchored_at"> };
  /** One row, under the key "log". */
  anchorTotals: { key: string; row: AnchorTotals };
  /** One row, under the key "log". */
  signedHeads: { key: string; row: SignedHeadRow };
  /** One row, under the key "log"; none in a log that was never replicated. */
  leader: { key: string; row: LeaderRow };
  /** By what it is for; none before it is first needed. */
  secrets: { key: "challenges" | "addresses"; row: SecretRow };
  /** By [when the challenge expires, in microseconds since the epoch; its random bytes in hex]. */
  usedChallenges: { key: [number, string]; row: UsedChallengeRow };
  /** By key fingerprint. */
  passwords: { key: string; row: PasswordRow };
  /** By user id. */
  users: { key: string; row: UserRow };
  /** By case-folded display name: the user's id. Names are unique without regard to case. */
  userNames: { key: string; row: { readonly user_id: string } };
  /** By [user id, credential id]. */
  credentials: { key: [string, string]; row: CredentialRow };
  /** By id. Of each key the two newest are kept. */
  trustConfigs: { key: number; row: TrustConfigRow };
  /** By key fingerprint: its newest trust configuration. Under the empty text: the newest of all. */
  trustConfigHeads: { key: string; row: TrustConfigHead };
  /** By key fingerprint: the place of its credential. A key is on at most one account at a time. */
  credentialKeys: { key: string; row: { readonly user_id: string; readonly credential_id: string } };
  /**
   * By term in hex: the leaf index of an entry whose payload is withheld. When the payload is gone, nothing else tells that what
   * somebody sends was on the log before. Terms are hashes, and nobody is shown them: the payload may be one that can be guessed.
   */
  withheldTerms: { key: string; row: { readonly leaf_index: number } };
}
export type TableName = keyof Tables;
export type KeyOf<T extends TableName> = Tables[T]["key"];
export type RowOf<T extends TableName> = Tables[T]["row"];

/** Tables that are derived from the entries; `rebuild` empties and refills exactly these. */
export const DERIVED_TABLES = [
  "seams",
  "operatorRotations",
  "withheld",
  "keys",
  "endorsements",
  "endorsementsByEndorser",
  "endorsementsByEndorsed",
  "acceptedEndorsements",
  "endorsementPairs",
  "revocationAlerts",
  "newestAlerts",
  "requests",
  "requestsByTarget",
  "requestsByRequester",
  "requestsByPair",
  "requestCounts",
  "requestNonces",
  "policies",
] as const satisfies readonly TableName[];
export type DerivedTable = (typeof DERIVED_TABLES)[number];

/** Tables that are not derived: if they are lost, only a copy brings them back. */
export const PRIVATE_TABLES = [
  "anchors",
  "anchorWork",
  "anchorTotals",
  "signedHeads",
  "leader",
  "trustConfigs",
  "trustConfigHeads",
  "secrets",
  "usedChallenges",
  "passwords",
  "users",
  "userNames",
  "credentials",
  "credentialKeys",
  "notifications",
  "inboxes",
  "quotas",
  "byteBudgets",
  "webhooks",
  "webhookCursors",
  "outbox",
  "outboxCounts",
  "counters",
  "withheldTerms",
] as const satisfies readonly TableName[];
export type PrivateTable = (typeof PRIVATE_TABLES)[number];

/** Of these and `meta`, the tables whose rows anybody may see. A journal may show them to those who may not see the others. */
const PUBLIC_TABLES: ReadonlySet<string> = new Set<RecordedTable>([
  "meta",
  "anchors",
  "anchorWork",
  "anchorTotals",
  "signedHeads",
  "leader",
]);
export const isPublic = (table: string): boolean => PUBLIC_TABLES.has(table);

/** Tables whose rows are not derived from entries, so that records of the journal have to carry them. */
export type RecordedTable = PrivateTable | "meta";
const RECORDED: ReadonlySet<string> = new Set<RecordedTable>(["meta", ...PRIVATE_TABLES]);
export const isRecorded = (table: string): table is RecordedTable => RECORDED.has(table);

export const RECORD_TABLES = ["meta", ...DERIVED_TABLES, ...PRIVATE_TABLES] as const satisfies readonly TableName[];

/**
 * Tables of plain bytes:
 * - `batches`: leaf index of the first entry → batch (`batch.ts`). The row that makes an append exist.
 * - `tiles`: [tree version, tile level, tile index] → up to 256 hashes of 32 bytes. Level-0 tiles are written when full,
 *   the newest tile of each higher level whenever it grows (once in 256 appends), so that a restart reads, not hashes.
 * - `journal`: one row, under the key "position" (`store/changeset.ts`). Every commit is made under the condition that it is still
 *   what the writer knows.
 */
export const BYTE_TABLES = ["batches", "tiles", "journal"] as const;

/**
 * 2: every commit changes the journal's position. A version without it would commit without changing it, so it refuses
 * to open the log.
 * 3: rows of keys say whether the key is proven.
 * 4: attestations are filed under what their signers signed, requests under target and requester together.
 * 5: rows of keys say whether the key has named itself, and endorsements that were accepted have a table of their own. Batches
 * hold entries in shorthand.
 */
export const FORMAT = 5;

/**
 * The kinds of postings. The numbers are on disk: never reuse one. `prefix` kinds keep the first 16 bytes of the term
 * itself, in sort order, so that a prefix is a range. The others keep 16 bytes of a SHA-256 of the term. It costs 2^64
 * work to find two texts with the same 16 bytes. Number 9 was used up to format 3.
 */
export const POSTING = {
  eventType: 1,
  tag: 2,
  /** An `entry_hashes` digest, hex-decoded (prefix). */
  digest: 3,
  /** A searchable payload field stored as bare hex, hex-decoded (prefix). */
  bareHash: 4,
  /** A searchable payload field stored as `sha256:` + hex, hex-decoded after the colon (prefix). */
  prefixedHash: 5,
  /** A searchable payload field stored as any other text, case-folded UTF-8 (prefix). */
  fieldText: 6,
  /** A key the entry names in one of the fields of `by-fingerprint`. */
  fingerprint: 7,
  document: 8,
  attestationId: 10,
  /** Every entry that created a key, in order. */
  keyCreated: 11,
  /** One, two or three neighbouring characters of a case-folded pseudonym, for substring search. */
  pseudonymGram: 12,
  /** The lookup key of an encrypted claim. */
  claimLookup: 13,
  /** Every attestation, whatever its predicate. */
  attestation: 14,
  /** Signer, manifest, type and statement of an attestation: they identify a repeated submission. */
  submission: 15,
  /** As `titleWord`, of words that an older version folded in another way; only its runs have them. */
  earlierTitleWord: 17,
  /** What a signer signed for an attestation, and the signature if the entry does not say what it is over. */
  signedPayload: 16,
  /** A word of a document's title or of a key's name, folded UTF-8 (prefix). Runs of older versions lack this kind. */
  titleWord: 18,
} as const;
export type PostingKind = (typeof POSTING)[keyof typeof POSTING];

/**
 * Whether a kind is mostly looked up when it is absent, to learn whether something is new: its terms are in each run's Bloom
 * filter, and stay when their payload is withheld.
 */
export const isFiltered = (kind: number): boolean =>
  kind === POSTING.attestationId || kind === POSTING.submission || kind === POSTING.signedPayload;
