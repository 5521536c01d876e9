/** `cairnlog/client`: a client for Node and browsers that verifies what it is told. */
export type { AccountsClient, NewAccount, NewCredential, Recovery } from "./accounts.js";
export type { AnchoringClient } from "./anchoring.js";
export type { AuditClient, AuditFilter } from "./audit.js";
export type { ClaimsClient } from "./claims.js";
export {
  type Attested,
  type AttestedDocument,
  type AttestOptions,
  type Client,
  type ClientOptions,
  createClient,
} from "./client.js";
export type { DocumentsClient } from "./documents.js";
export type { EndorsementFilter, EndorsementsClient, Offer } from "./endorsements.js";
export { ClientError, type ClientErrorOptions, type Evidence } from "./error.js";
export type { KeysClient, RegisterOptions, SucceedOptions } from "./keys.js";
export type { EntryFilter, LogReader, TrailFilter } from "./log.js";
export type { NewPolicy, PoliciesClient } from "./policies.js";
export type { Answer, InboxClient, NewRequest, RequestFilter, RequestsClient } from "./requests.js";
export { isOwnChallenge, type Purpose } from "./session.js";
export { type Signer, webCryptoSigner } from "./signer.js";
export { ClientState, memoryStore, type State, type Store } from "./store.js";
export type { GraphFilter, NewTrustConfig, TrustClient } from "./trust.js";
export type * from "./types.js";
export type { ProvenEntry } from "./watch.js";
export type { WebhooksClient } from "./webhooks.js";
