/** cairnlog, the embeddable transparency log: open, append, prove, verify, close. */

export { CairnlogError, type ErrorCode } from "./base/error.js";
export { generatePrivateKey } from "./crypto/keys/signatures.js";
export { createPool, type Pool } from "./crypto/pool/pool.js";
export type { Signer } from "./crypto/signer/operator-key.js";
export { type OperatorKey, openOperatorKey, operatorKey, publicOperatorKey } from "./crypto/signer/operator-key.js";
export { type SignerOptions, type SocketSigner, signerAt } from "./crypto/signer/socket-signer.js";
export type { VerifyReport } from "./log/check/verify.js";
export {
  type HistoryItem,
  type HistoryOptions,
  type HistoryWarning,
  HistoryWriter,
  openHistory,
} from "./log/history/history.js";
export { type ImportOptions, type ImportReport, type ImportSource, importEntries } from "./log/history/import.js";
export { type Log, type LogReaderOptions, openLog, openLogReader } from "./log/log.js";
export type { LogOptions } from "./log/start.js";
export type { Clock } from "./log/state/clock.js";
export type { Receipt, Writer } from "./log/state/executor.js";
export type { EventInput } from "./log/state/projection.js";
export type { ConsistencyProof } from "./log/tree/proofs.js";
export type { LogReader } from "./log/view/reader.js";
export type { LogView } from "./log/view/view.js";
export type { LogWriter } from "./log/writer.js";
export type { InclusionProof } from "./verify/bundle/format.js";
export type { Entry } from "./verify/tree/entry.js";
export type { TreeHead } from "./verify/tree/treehead.js";
