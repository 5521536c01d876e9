/**
 * `cairnlog/verify`: everything that a third party needs to check the log without trusting its operator. It runs in
 * Node and in browsers, imports no Node module, and does no I/O.
 */
export { CairnlogError, type ErrorCode, type ErrorDetail } from "../base/error.js";
export * from "./bundle/bundle.js";
export {
  type AttestationBundle,
  type AttestationEvent,
  BUNDLE_FORMAT,
  type BundleCheck,
  type BundleVerdict,
  type InclusionProof,
  verdictOf,
} from "./bundle/format.js";
export { decodeBase64, encodeBase64 } from "./bytes/encoding.js";
export {
  type DsseEnvelope,
  dsseSignatureOf,
  type EnvelopeSubject,
  envelopeSubject,
  inTotoStatement,
  parseDsseEnvelope,
  preAuthEncoding,
  type Statement,
  verifyEnvelopeBundle,
} from "./dsse/dsse.js";
export { checkServiceEntry, eventMisfit } from "./events/eventcheck.js";
export { EVENT_KINDS, EVENT_TYPES, type EventKind, type EventType, kindOf } from "./events/kinds.js";
export * from "./events/manifest.js";
export { type EntryVerdict, isPayloadOf, isWithheld, type WithheldEntry, withholdingFault } from "./events/withheld.js";
export { canonicalJson, parseIJson } from "./json/canonical.js";
export { type KeyAlgorithm, type PublicKey, parsePublicKey } from "./keys/publickey.js";
export { verifySignature } from "./keys/signature.js";
export { formatVkey, type NoteKey, type NoteKeyType, noteKey, noteKeyId, parseVkey } from "./note/key.js";
export {
  type Checkpoint,
  checkpointText,
  formatNote,
  isNoteName,
  type NoteSignature,
  parseCheckpointText,
  parseNote,
  parseSignatureLines,
  parseTreeSize,
  type SignedNote,
  signatureLine,
  signedNote,
} from "./note/note.js";
export {
  type Cosignature,
  cosignatureMessage,
  decodeCosignature,
  encodeCosignature,
  type SignatureCheck,
  type VerifiedNote,
  type VerifiedSignature,
  verifyNote,
  verifySignatures,
} from "./note/verify.js";
export * from "./ots/ots.js";
export {
  isQuorum,
  type Policy,
  type PolicyGroup,
  type PolicyLog,
  type PolicyVerdict,
  type PolicyWitness,
  parsePolicy,
  verifyByPolicy,
} from "./tlog/policy.js";
export {
  formatTlogProof,
  parseTlogProof,
  type TlogProof,
  type TlogProofVerdict,
  verifyTlogProof,
} from "./tlog/proof.js";
export { consistencyParts, inclusionParts, type ProofPart } from "./tlog/proofpaths.js";
export * as rfc6962 from "./tlog/rfc6962.js";
export { parseTilePath, type TileName, tilePath } from "./tlog/tilepath.js";
export {
  canonicalTimestamp,
  checkEntry,
  type Entry,
  type EntryDigest,
  type EntryProblem,
  entryHash,
  entryPreimage,
  requestedTime,
} from "./tree/entry.js";
export * from "./tree/merkle.js";
export {
  OperatorKeys,
  type OperatorTerm,
  type RotationStatement,
  rotationMessage,
  type TermRotation,
} from "./tree/operators.js";
export { type TreeHead, treeHeadMessage, verifyCheckpoint, verifyTreeHead } from "./tree/treehead.js";
