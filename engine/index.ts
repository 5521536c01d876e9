/** cairnlog, the embeddable transparency log: open, append, prove, verify, close. */
export { type OperatorKey, openOperatorKey, operatorKey, publicOperatorKey } from "./crypto/keys/operator-key.js";
export { generatePrivateKey } from "./crypto/keys/private-key.js";
export { createPool, type Pool } from "./crypto/pool/pool.js";
export { type SignerOptions, type SocketSigner, signerAt } from "./crypto/signer/socket-signer.js";
export { CairnlogError, type ErrorCode } from "./error.js";
export type { VerifyReport } from "./log/check/verify.js";
export type { Clock } from "./log/clock.js";
export {
  type HistoryItem,
  type HistoryOptions,
  type HistoryWarning,
  HistoryWriter,
  openHistory,
} from "./log/history/history.js";
export { type ImportOptions, type ImportReport, type ImportSource, importEntries } from "./log/history/import.js";
export { type Log, type LogOptions, type LogReaderOptions, openLog, openLogReader } from "./log/log.js";
export type { LogReader } from "./log/reader.js";
export type { ConsistencyProof } from "./log/tree/proofs.js";
export type { LogView } from "./log/view.js";
export type { Receipt } from "./log/write/executor.js";
export type { EventInput } from "./log/write/projection.js";
export type { Signer } from "./log/write/signer.js";
export type { LogWriter } from "./log/writer.js";
export type { InclusionProof } from "./verify/bundle/format.js";
export type { Entry } from "./verify/entry.js";
export type { TreeHead } from "./verify/tree/treehead.js";
