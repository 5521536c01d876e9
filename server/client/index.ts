/** `cairnlog/client`: a client for Node and browsers that verifies the service's answers. */

export { type ChallengePurpose, type ChallengeTerms, isChallengeNonce } from "../../engine/verify/events/possession.js";
export { ClientError, type ClientErrorOptions, type Evidence, type UnverifiedAnswer } from "./base/error.js";
export { type Signer, type WebCryptoKey, type WebCryptoKeyPair, webCryptoSigner } from "./base/signer.js";
export { ClientState, memoryStore, type State, type Store } from "./base/store.js";
export type * from "./base/types.js";
export { type Client, type ClientOptions, createClient } from "./client.js";
export type { AccountsClient, NewAccount, NewCredential, Recovery } from "./identity/accounts.js";
export type { KeysClient, RegisterOptions, SucceedOptions } from "./identity/keys.js";
export type { AnchoringClient } from "./log/anchoring.js";
export type { AuditClient, AuditFilter } from "./log/audit.js";
export type { EntryFilter, LogReader, TrailFilter } from "./log/log.js";
export type { ProvenEntry } from "./log/proven.js";
export type { Files } from "./log/served.js";
export type { ShardsClient } from "./log/shards.js";
export type { TlogInclusion, TlogReader, VerifiedCheckpoint } from "./log/tlog.js";
export type { WithholdingClient } from "./log/withholding.js";
export type { AttestedDocument, AttestOptions, AttestOutcome, Subject } from "./signing/attestations.js";
export type { ClaimsClient } from "./signing/claims.js";
export type { DocumentsClient } from "./signing/documents.js";
export type { EndorsementFilter, EndorsementsClient, Offer } from "./signing/endorsements.js";
export type { Attested } from "./signing/receipts.js";
export type {
  Answer,
  InboxClient,
  NewPolicy,
  NewRequest,
  PoliciesClient,
  RequestFilter,
  RequestsClient,
} from "./signing/requests.js";
export type { GraphFilter, NewTrustConfig, TrustClient } from "./signing/trust.js";
export type { WebhooksClient } from "./webhooks.js";
