/** `cairnlog/client`: a client for Node and browsers that verifies what it is told. */
export {
  type Attested,
  type AttestedDocument,
  type AttestOptions,
  type Client,
  type ClientOptions,
  createClient,
} from "./client.js";
export type { EndorsementFilter, EndorsementsClient, Offer } from "./endorsements.js";
export { ClientError, type ClientErrorOptions, type Evidence } from "./error.js";
export type { KeysClient, RegisterOptions, SucceedOptions } from "./keys.js";
export type { EntryFilter, LogReader } from "./log.js";
export type { Answer, InboxClient, NewRequest, RequestFilter, RequestsClient } from "./requests.js";
export { isOwnChallenge, type Purpose } from "./session.js";
export { type Signer, webCryptoSigner } from "./signer.js";
export { ClientState, memoryStore, type State, type Store } from "./store.js";
export type * from "./types.js";
export type { ProvenEntry } from "./watch.js";
