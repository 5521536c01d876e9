/** What travels, as types: all of them follow from the schemas of `wire/`, none is written twice. */
import type { Static } from "typebox";
import type * as attestations from "../wire/attestations.js";
import type * as auth from "../wire/auth.js";
import type * as endorsements from "../wire/endorsements.js";
import type * as inbox from "../wire/inbox.js";
import type * as keys from "../wire/keys.js";
import type * as log from "../wire/log.js";
import type * as requests from "../wire/requests.js";
import type * as verification from "../wire/verification.js";

export type AttestationReceipt = Static<typeof attestations.AttestationReceipt>;
export type SubmitAttestation = Static<typeof attestations.SubmitAttestation>;
export type AuthProof = Static<typeof auth.AuthProof>;
/** A token and whose it is; whoever has the token can act for the key until it expires. */
export type Session = Static<typeof auth.LoginResult>;
export type Endorsement = Static<typeof endorsements.Endorsement>;
export type EndorsementReceipt = Static<typeof endorsements.EndorsementReceipt>;
export type EndorsementQuery = Static<typeof endorsements.EndorsementQuery>;
export type OfferEndorsement = Static<typeof endorsements.OfferEndorsement>;
export type AlertReceipt = Static<typeof endorsements.AlertReceipt>;
export type Notification = Static<typeof inbox.Notification>;
export type KeyDetail = Static<typeof keys.KeyDetail>;
export type KeyRegistered = Static<typeof keys.KeyRegistered>;
export type KeyRevoked = Static<typeof keys.KeyRevoked>;
export type KeySucceeded = Static<typeof keys.KeySucceeded>;
export type KeySummary = Static<typeof keys.KeySummary>;
export type ConsistencyProof = Static<typeof log.ConsistencyProof>;
export type LogQuery = Static<typeof log.LogQuery>;
export type AttestationRequest = Static<typeof requests.AttestationRequest>;
export type CreateRequest = Static<typeof requests.CreateRequest>;
export type RequestPage = Static<typeof requests.RequestPage>;
export type RequestQuery = Static<typeof requests.RequestQuery>;
export type RequestResponse = Static<typeof requests.RequestResponse>;
export type Respond = Static<typeof requests.Respond>;
export type VerificationResult = Static<typeof verification.VerificationResult>;
export type VerifyManifest = Static<typeof verification.VerifyManifest>;
