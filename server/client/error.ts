/**
 * The one error class of the client: refusals of the service with their stable codes, and what the client itself finds
 * wrong, up to a log that contradicts itself. Pure, so that it also runs in browsers.
 */
import type { Entry, ErrorDetail, InclusionProof, OperatorTerm, TreeHead } from "../../engine/verify/index.js";
import { OversizedAnswer } from "./body.js";
import type { ConsistencyProof } from "./types.js";

/**
 * What shows that the log misbehaved, as far as it was received: keep it, and show it to others. Two heads that the
 * operator signed and no proof connects convict the operator without anybody's word; anything else may also have been
 * changed on the way.
 */
export interface Evidence {
  /** PEM of the operator key that was pinned. */
  readonly operatorKey: string;
  /** The chain of operator keys that it belongs to, as far as it is known. */
  readonly operators: readonly OperatorTerm[];
  /** The head that was believed until now; null before the first. */
  readonly known: TreeHead | null;
  /** The head that came with the lie; null where none came. */
  readonly shown: TreeHead | null;
  /** The proof that does not hold; null where none was given, or where none was needed to tell. */
  readonly proof: ConsistencyProof | InclusionProof | null;
  /** The entry that is not what it should be; null where it is not about one. */
  readonly entry: Entry | null;
}

/** What a `ClientError` carries besides its code and its sentence. */
export interface ClientErrorOptions {
  readonly status?: number;
  readonly errors?: readonly ErrorDetail[];
  readonly retryAfter?: number | undefined;
  readonly evidence?: Evidence;
  readonly cause?: unknown;
}

/**
 * Everything the client throws on purpose. `code` is the service's, or one of the client's own:
 * `no-answer` (nothing came back), `malformed-answer` (not what the API promises), `log-misbehaved` (with `evidence`),
 * `unsafe-challenge` (a nonce that must not be signed), `no-signer`, `operator-key-mismatch` (the pinned key is not the
 * one in the store), `unverifiable-receipt` (recorded in a form that a receipt does not cover), `stale-answer` (true
 * once, and older than what was seen already).
 */
export class ClientError extends Error {
  /** HTTP status; 0 where there was no answer or the fault lies in what a good answer says. */
  readonly status: number;
  readonly code: string;
  /** The sentence, also in `message`. */
  readonly detail: string;
  /** With 422: the members to blame. */
  readonly errors: readonly ErrorDetail[];
  /** Seconds after which another try may succeed; absent where waiting does not help. */
  declare readonly retryAfter?: number;
  /** Present with `log-misbehaved` alone. */
  declare readonly evidence?: Evidence;

  constructor(code: string, detail: string, options: ClientErrorOptions = {}) {
    super(detail, "cause" in options ? { cause: options.cause } : undefined);
    this.name = "ClientError";
    this.code = code;
    this.detail = detail;
    this.status = options.status ?? 0;
    this.errors = options.errors ?? [];
    if (options.retryAfter !== undefined) this.retryAfter = options.retryAfter;
    if (options.evidence !== undefined) this.evidence = options.evidence;
  }
}

/** Whether an answer was refused because it is too long, so that a smaller one may be asked for. */
export const isOversized = (error: unknown): boolean =>
  error instanceof ClientError && error.cause instanceof OversizedAnswer;
