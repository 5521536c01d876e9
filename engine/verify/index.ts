/**
 * `cairnlog/verify`: everything that a third party needs to check the log without trusting its operator. Pure: runs in
 * Node and in browsers, imports no Node module, does no I/O.
 */
export { CairnlogError, type ErrorCode, type ErrorDetail } from "../error.js";
export { type AnchorVerdict, checkOtsProof } from "./anchor.js";
export * from "./bundle.js";
export {
  type AttestationBundle,
  type AttestationEvent,
  BUNDLE_FORMAT,
  type InclusionProof,
} from "./bundleformat.js";
export { canonicalJson } from "./canonical.js";
export { type Checkpoint, checkpointText, isNoteName, noteKeyId, signedNote, verifyCheckpoint } from "./checkpoint.js";
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
export { parseIJson } from "./ijson.js";
export * from "./manifest.js";
export * from "./merkle.js";
export * from "./ots.js";
export { type KeyAlgorithm, type PublicKey, parsePublicKey } from "./publickey.js";
export { verifySignature } from "./signature.js";
export { type TreeHead, treeHeadMessage, verifyTreeHead } from "./treehead.js";
