/** cairnlog, the embeddable transparency log: open, append, prove, verify, close. */
export { type OperatorKey, openOperatorKey, operatorKey, publicOperatorKey } from "./crypto/operator-key.js";
export { createPool, type Pool } from "./crypto/pool.js";
export { generatePrivateKey } from "./crypto/private-key.js";
export { CairnlogError, type ErrorCode } from "./error.js";
export type { Clock } from "./log/clock.js";
export {
  type HistoryItem,
  type HistoryOptions,
  type HistoryWarning,
  HistoryWriter,
  openHistory,
} from "./log/history.js";
export { type ImportOptions, type ImportReport, type ImportSource, importEntries } from "./log/import.js";
export { type ConsistencyProof, type Log, type LogOptions, openLog } from "./log/log.js";
export type { EventInput } from "./log/projection.js";
export type { Receipt } from "./log/sequencer.js";
export type { Signer } from "./log/signer.js";
export type { VerifyReport } from "./log/verify.js";
export type { InclusionProof } from "./verify/bundleformat.js";
export type { Entry } from "./verify/entry.js";
export type { TreeHead } from "./verify/treehead.js";
