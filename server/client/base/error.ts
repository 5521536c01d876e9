/**
 * The only error class of the client. It represents errors of the service with their stable codes, and errors that the
 * client itself detects, including contradictions of the log. It also runs in browsers.
 */
import type { Successor } from "../../../engine/base/error.js";
import type {
  Entry,
  ErrorDetail,
  InclusionProof,
  Manifest,
  OperatorTerm,
  TreeHead,
} from "../../../engine/verify/index.js";
import { OversizedAnswer } from "./body.js";
import type { AttestationReceipt, ConsistencyProof } from "./types.js";

/**
 * The received data that shows a misbehaviour of the log. Keep it, and show it to others. Two heads that the operator
 * signed and that no proof connects convict the operator without further evidence. Anything else may also have been
 * changed on the way.
 */
export interface Evidence {
  /** PEM of the operator key that was pinned. */
  readonly operatorKey: string;
  /** The chain of operator keys that it belongs to, as far as it is known. */
  readonly operators: readonly OperatorTerm[];
  /** The head that was believed until now; null before the first. */
  readonly known: TreeHead | null;
  /** The head of the misbehaviour; null if there was none. */
  readonly shown: TreeHead | null;
  /** The invalid proof; null if none was given, or if the misbehaviour shows without one. */
  readonly proof: ConsistencyProof | InclusionProof | null;
  /** The wrong entry; null if the misbehaviour is not about an entry. */
  readonly entry: Entry | null;
}

/** What a service has answered to an attestation. Nothing of the answer is believed. */
export interface UnverifiedAnswer {
  /** What was to be attested. */
  readonly subject: Manifest["document"] | Manifest;
  /** What was signed and sent. */
  readonly manifest: Manifest;
  readonly answer: AttestationReceipt;
}

/** The members of a `ClientError` besides its code and its sentence. */
export interface ClientErrorOptions {
  readonly status?: number;
  readonly errors?: readonly ErrorDetail[];
  readonly retryAfter?: number | undefined;
  readonly remaining?: number | undefined;
  readonly successor?: Successor | undefined;
  readonly requestId?: string | undefined;
  readonly evidence?: Evidence;
  readonly cause?: unknown;
}

/**
 * Every intended error of the client. `code` is the service's, or one of the client's own: `no-answer` (no answer),
 * `malformed-answer` (not an answer of this API), `log-misbehaved` (with `evidence`), `unsafe-challenge` (a challenge
 * that must not be signed: of another service, or for something else), `no-signer`, `operator-key-mismatch` (the pinned key is not the one in the store, or
 * not that of the service, and no rotation leads to that),
 * `unverifiable-receipt` (recorded in a form that receipts do not cover), `stale-answer` (a true answer that is older
 * than the last seen head), `unverifiable-successor` (the log goes on under a key that nobody can tell from its end).
 */
export class ClientError extends Error {
  /** HTTP status; 0 without an answer, or if the content of a successful answer is wrong. */
  readonly status: number;
  readonly code: string;
  /** The sentence, also in `message`. */
  readonly detail: string;
  /** With 422: the wrong members. */
  readonly errors: readonly ErrorDetail[];
  /** Seconds after which another attempt may succeed; absent if waiting does not help. */
  declare readonly retryAfter?: number;
  /** With 429: how many requests the limit has left. More than none if a batch holds more. */
  declare readonly remaining?: number;
  /** With `frozen`: where the log goes on, as the service says. `Client.shards` has it proven. */
  declare readonly successor?: Successor;
  /** The id under which the service's log has the refused request; absent if the service did not give one. */
  declare readonly requestId?: string;
  /**
   * What was received. Present with `log-misbehaved`, with `stale-answer` for a head that is older than the last seen one, and with
   * `operator-key-mismatch` if the service shows the other key.
   */
  declare readonly evidence?: Evidence;
  /** Answers that say that attestations were recorded, and were not verified because of this error. */
  declare unverified?: readonly UnverifiedAnswer[];

  constructor(code: string, detail: string, options: ClientErrorOptions = {}) {
    super(detail, options);
    this.name = "ClientError";
    this.code = code;
    this.detail = detail;
    this.status = options.status ?? 0;
    this.errors = options.errors ?? [];
    for (const name of ["retryAfter", "remaining", "successor", "requestId", "evidence"] as const)
      if (options[name] !== undefined) Object.assign(this, { [name]: options[name] });
  }
}

/**
 * Whether an answer with this status says that what was asked for is not there. Stores of objects that hide what they have
 * answer 403, others 400 or 410; 429 only asks to wait.
 */
export const isAbsent = (status: number): boolean => status >= 400 && status < 500 && status !== 429;

/** Whether an error is such an answer. */
export const isAbsence = (error: unknown): error is ClientError =>
  error instanceof ClientError && isAbsent(error.status);

/** Whether an answer was too long, so that the client may ask for a smaller one. */
export const isOversized = (error: unknown): boolean =>
  error instanceof ClientError && error.cause instanceof OversizedAnswer;

/** What is wrong with a certificate, by the code of Node's error. */
const CERTIFICATES: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "has expired",
  CERT_NOT_YET_VALID: "is not valid yet",
  CERT_REVOKED: "was revoked",
  ERR_TLS_CERT_ALTNAME_INVALID: "is for another name",
  HOSTNAME_MISMATCH: "is for another name",
};
const UNTRUSTED = /CERT|ISSUER|LEAF_SIGNATURE|INVALID_CA/;
const OWN_AUTHORITY = "For an authority of your own, set NODE_EXTRA_CA_CERTS to its PEM file.";

/** Why a service gave no answer, as a sentence. Only Node says why; browsers do not. @param cause what `fetch` threw */
export function silenceReason(server: string, cause: unknown): string {
  const code = codeOf(cause);
  if (code === "ENOTFOUND" || code === "EAI_AGAIN")
    return `The name in ${server} cannot be looked up (${code}).${unusedProxy(server)}`;
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER") return `What answers at ${server} speaks no TLS. Is it http: instead?`;
  const fault = Object.hasOwn(CERTIFICATES, code) ? CERTIFICATES[code] : undefined;
  if (fault !== undefined) return `The certificate of ${server} ${fault} (${code}), so nothing was sent.`;
  if (UNTRUSTED.test(code))
    return `The certificate of ${server} is not signed by an authority that is trusted here (${code}), so nothing was sent. ${OWN_AUTHORITY}`;
  if (isBadPort(cause))
    return `Browsers and fetch send nothing to the port of ${server}. Let the service listen on another one.`;
  return `No service answers at ${server}. Is it running?${unusedProxy(server)}`;
}

/** Node says so in the message of the cause alone. */
const isBadPort = (error: unknown): boolean =>
  error instanceof Error && (error.message === "bad port" || isBadPort(error.cause));

/** A sentence about a proxy that the environment names and Node does not use; empty without one, and in browsers. */
function unusedProxy(server: string): string {
  const { process } = globalThis as { readonly process?: { readonly env?: Readonly<Record<string, string>> } };
  const env = process?.env;
  if (!env || env.NODE_USE_ENV_PROXY === "1") return "";
  const scheme = server.startsWith("https:") ? "https_proxy" : "http_proxy";
  const name = [scheme, scheme.toUpperCase()].find((variable) => env[variable]);
  if (name === undefined) return "";
  return ` ${name} is set, but Node uses it only with NODE_USE_ENV_PROXY=1, from 22.21 and 24 on.`;
}

/** The code of the error behind those of `fetch`; the empty string if there is none. */
function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause)
    if ("code" in at && typeof at.code === "string" && at.code !== "") return at.code;
  return "";
}
