/**
 * `cairnlog/verify`: everything that a third party needs to check the log without trusting its operator. It runs in
 * Node and in browsers, imports no Node module, and does no I/O.
 */
export { CairnlogError, type ErrorCode, type ErrorDetail } from "../error.js";
export * from "./bundle/bundle.js";
export {
  type AttestationBundle,
  type AttestationEvent,
  BUNDLE_FORMAT,
  type InclusionProof,
} from "./bundle/format.js";
export { decodeBase64, encodeBase64 } from "./encoding.js";
export {
  canonicalTimestamp,
  checkEntry,
  type Entry,
  type EntryDigest,
  type EntryProblem,
  entryHash,
  entryPreimage,
} from "./entry.js";
export { checkServiceEntry, eventMisfit } from "./eventcheck.js";
export { canonicalJson } from "./json/canonical.js";
export { parseIJson } from "./json/ijson.js";
export { type KeyAlgorithm, type PublicKey, parsePublicKey } from "./keys/publickey.js";
export { verifySignature } from "./keys/signature.js";
export { EVENT_KINDS, EVENT_TYPES, type EventKind, type EventType, kindOf } from "./kinds.js";
export * from "./manifest.js";
export { type AnchorVerdict, checkOtsProof } from "./ots/anchor.js";
export * from "./ots/ots.js";
export {
  type Checkpoint,
  checkpointText,
  isNoteName,
  noteKeyId,
  signedNote,
  verifyCheckpoint,
} from "./tree/checkpoint.js";
export * from "./tree/merkle.js";
export {
  OperatorKeys,
  type OperatorTerm,
  type RotationStatement,
  rotationMessage,
  type TermRotation,
} from "./tree/operators.js";
export { type TreeHead, treeHeadMessage, verifyTreeHead } from "./tree/treehead.js";
