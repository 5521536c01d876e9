/**
 * The one error class of the engine and of the verifier: a stable code for programs, a sentence for people.
 * Pure, so that it also runs in browsers.
 */

/** What went wrong, as a stable word. Adding one is a compatible change; renaming one is not. */
export type ErrorCode =
  | "overloaded"
  | "closed"
  | "signer-unavailable"
  | "storage-failed"
  | "storage-full"
  | "clock-suspect"
  | "not-leader"
  | "worker-failed"
  | "corrupt-log"
  | "invalid-input"
  | "not-found"
  | "already-exists"
  | "key-not-active"
  | "wrong-key-status"
  | "challenge-used"
  | "forbidden"
  | "proof-required"
  | "not-a-writer"
  | "private-key"
  | "invalid-key"
  | "invalid-signature"
  | "invalid-proof"
  | "not-i-json"
  | "precondition-failed"
  | "unauthenticated"
  | "gone"
  | "frozen"
  | "rate-limited"
  | "budget-spent"
  | "payload-too-large"
  | "unsupported-commitment"
  | "commitment-key-missing"
  | "decryption-failed"
  | "calendars-unavailable"
  | "wrong-operator"
  | "in-use"
  | "indexing";

/** One fault in an input: `path` is a JSON Pointer (RFC 6901) into it, `message` a sentence. */
export interface ErrorDetail {
  readonly path: string;
  readonly message: string;
}

/** Where a log goes on that was frozen: the address of the next one, and the key that signs its checkpoints. */
export interface Successor {
  readonly url: string;
  /** Verifier key (c2sp.org/signed-note). */
  readonly vkey: string;
}

/** What an error may have beside its code and sentence. */
interface ErrorParts {
  cause?: unknown;
  details?: readonly ErrorDetail[];
  retryAfter?: number;
  successor?: Successor;
}

/**
 * Everything the engine throws on purpose. `details` is present only where single members are to blame, `retryAfter`
 * (seconds) only where waiting helps and it is known how long, `successor` only with `frozen`.
 */
export class CairnlogError extends Error {
  readonly code: ErrorCode;
  declare readonly details?: readonly ErrorDetail[];
  declare readonly retryAfter?: number;
  declare readonly successor?: Successor;

  constructor(code: ErrorCode, message: string, options: ErrorParts = {}) {
    super(message, options);
    this.name = "CairnlogError";
    this.code = code;
    if (options.details !== undefined) this.details = options.details;
    if (options.retryAfter !== undefined) this.retryAfter = options.retryAfter;
    if (options.successor !== undefined) this.successor = options.successor;
  }
}

/** A value that somebody gave is wrong. Most errors of the engine are of this code. */
export const inputError = (message: string, options?: ErrorParts): CairnlogError =>
  new CairnlogError("invalid-input", message, options);
