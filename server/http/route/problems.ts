/**
 * Errors as `application/problem+json` (RFC 9457). One table maps the engine's error codes to HTTP. A few codes exist
 * only in HTTP.
 */
import { CairnlogError, type ErrorCode, type ErrorDetail } from "../../../engine/base/error.js";
import type { Problem } from "../../../engine/contract/common.js";
import type { Standing } from "../limits/limits.js";
import { type Answer, json, REASONS } from "../transport/answer.js";
import type { PartRefusal } from "./route.js";

interface Refusal {
  readonly status: number;
  /** Shown instead of the error's own sentence, which may contain details of the machine, or know less. */
  readonly detail?: string;
  /** Seconds for `Retry-After`, if the error has none. */
  readonly retryAfter?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

const REFUSALS: Readonly<Record<ErrorCode, Refusal>> = {
  "invalid-input": { status: 422 },
  "invalid-key": { status: 422 },
  "private-key": {
    status: 422,
    // The engine cannot know how it got the key. Here it came in a request.
    detail:
      "This is a private key. It was sent over the network and must be considered exposed: stop using it, make a new key pair, and send only the public key.",
  },
  "invalid-signature": { status: 422 },
  "invalid-proof": { status: 422 },
  "not-i-json": { status: 422 },
  "decryption-failed": { status: 422 },
  "unsupported-commitment": { status: 400 },
  "commitment-key-missing": { status: 400 },
  unauthenticated: { status: 401, headers: { "www-authenticate": "Bearer" } },
  forbidden: { status: 403 },
  "proof-required": { status: 403 },
  "not-a-writer": { status: 403 },
  "key-not-active": { status: 403 },
  "not-found": { status: 404 },
  "already-exists": { status: 409 },
  "wrong-key-status": { status: 409 },
  "challenge-used": { status: 409 },
  "precondition-failed": { status: 409 },
  gone: { status: 410 },
  frozen: { status: 410 },
  "payload-too-large": { status: 413 },
  "rate-limited": { status: 429 },
  "budget-spent": { status: 429 },
  "calendars-unavailable": { status: 502 },
  overloaded: { status: 503, retryAfter: 1, detail: "The service has too much to do; nothing was written. Retry." },
  closed: { status: 503, retryAfter: 5, detail: "The service is shutting down; nothing was written. Retry." },
  "not-leader": {
    status: 503,
    retryAfter: 1,
    detail:
      "Another node writes this log. Retry there, or here. Look whether your entry is there before you try again.",
  },
  "signer-unavailable": {
    status: 503,
    retryAfter: 10,
    detail: "The operator key cannot sign at the moment; nothing was written. Retry.",
  },
  "storage-failed": {
    status: 503,
    retryAfter: 10,
    detail: "The log could not be written. Look whether your entry is there before you try again.",
  },
  "storage-full": {
    status: 503,
    retryAfter: 10,
    detail: "The disk of the log is full; nothing was written. Retry when there is room.",
  },
  "clock-suspect": {
    status: 503,
    retryAfter: 60,
    detail: "The clock of the service may be wrong; nothing was written. Retry when its operator has looked at it.",
  },
  "worker-failed": { status: 503, retryAfter: 1, detail: "A worker of the service failed. Retry." },
  indexing: { status: 503 },
  "corrupt-log": { status: 500, detail: "The service found damage in its log." },
  "wrong-operator": { status: 500, detail: "The service is not set up rightly." },
  "in-use": { status: 500, detail: "The service is not set up rightly." },
};

/** The codes that exist only in HTTP. */
const HTTP_CODES = {
  "ambiguous-length": 400,
  "malformed-json": 400,
  "malformed-request": 400,
  "not-an-object": 400,
  "foreign-origin": 403,
  "method-not-allowed": 405,
  "request-timeout": 408,
  "unsupported-media-type": 415,
  "misdirected-request": 421,
  "rate-limited": 429,
  "internal-error": 500,
  "not-ready": 503,
  "not-leader": 503,
  behind: 503,
} as const;

/** What a witness answers, and the service never does. */
const OF_A_WITNESS: ReadonlySet<string> = new Set<ErrorCode>(["invalid-proof"]);

/** Every code of the service's errors with this status. */
export function codesOf(status: number): string[] {
  const engine = Object.entries(REFUSALS).flatMap(([code, refusal]) => (refusal.status === status ? [code] : []));
  const http = Object.entries(HTTP_CODES).flatMap(([code, of]) => (of === status ? [code] : []));
  return [...new Set([...http, ...engine])].filter((code) => !OF_A_WITNESS.has(code));
}

/** An error that exists only in HTTP. */
export class HttpError extends Error {
  readonly status: number;
  readonly code: keyof typeof HTTP_CODES;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: keyof typeof HTTP_CODES, detail: string, headers: Readonly<Record<string, string>> = {}) {
    super(detail);
    this.status = HTTP_CODES[code];
    this.code = code;
    this.headers = headers;
  }
}

/** The limit is exhausted, or has fewer requests left than a body holds. @param asked number of these */
export const rateLimited = ({ name, reset, limit, remaining }: Standing, asked = 1): HttpError => {
  const wait = `Try again in ${reset} seconds`;
  const detail = remaining
    ? `The limit "${name}" has ${remaining} of ${limit} left, and this holds ${asked}; nothing was done. ${wait}, or send fewer.`
    : `The limit "${name}" is used up. ${wait}.`;
  return new HttpError("rate-limited", detail, { "retry-after": `${reset}` });
};

/** The answer to a request that failed with `error`. */
export function problemAnswer(error: unknown, requestId: string): Answer {
  const { problem, headers } = refusalOf(error, requestId);
  return json(problem, { status: problem.status, contentType: "application/problem+json", headers });
}

/** The refusal of one of many requests in a body, which failed with `error`. @param requestId of the whole */
export function partRefusal(error: unknown, requestId: string): PartRefusal {
  const { problem, headers } = refusalOf(error, requestId);
  const wait = headers["retry-after"];
  return { status: problem.status, problem, ...(wait === undefined ? {} : { retry_after: Number(wait) }) };
}

/** The problem document of `error`, and the headers of its answer. An unexpected error becomes a 500 without details. */
function refusalOf(
  error: unknown,
  requestId: string,
): { readonly problem: Problem; readonly headers: Readonly<Record<string, string>> } {
  if (error instanceof HttpError)
    return { problem: problemOf(requestId, error.status, error.code, error.message), headers: error.headers };
  if (error instanceof CairnlogError) {
    const { status, detail = error.message, retryAfter, headers } = REFUSALS[error.code];
    const wait = error.retryAfter ?? retryAfter;
    const retry: Record<string, string> = wait === undefined ? {} : { "retry-after": `${wait}` };
    const problem = problemOf(requestId, status, error.code, detail, error.details);
    if (error.successor) problem.successor = { ...error.successor };
    return { problem, headers: { ...headers, ...retry } };
  }
  const detail = "Something went wrong in the service. The request id leads to it in its log.";
  return { problem: problemOf(requestId, 500, refusalCode(error), detail), headers: {} };
}

/** Refusals that come by the thousand when they come; they are counted, and a line for each would be one burden more. */
export const isCommonplace = (error: unknown): boolean => COMMONPLACE.has(refusalCode(error));

const COMMONPLACE: ReadonlySet<string> = new Set<ErrorCode | keyof typeof HTTP_CODES>([
  "overloaded",
  "closed",
  "not-leader",
  "clock-suspect",
  "behind",
]);

/** The length of a body can be read in two ways. */
export const ambiguousLength = (): HttpError =>
  new HttpError("ambiguous-length", "The request says in two ways, or in none that is known, where its body ends.");

/** A proxy in front may have gone by the other one. */
export const twoHosts = (): HttpError =>
  new HttpError("malformed-request", "The request has more than one Host header.");

/** The error code of the answer to a request that failed with `error`. */
export const refusalCode = (error: unknown): string =>
  error instanceof HttpError || error instanceof CairnlogError ? error.code : "internal-error";

function problemOf(
  requestId: string,
  status: number,
  code: string,
  detail: string,
  errors?: readonly ErrorDetail[],
): Problem {
  const problem: Problem = { type: "about:blank", title: REASONS[status] ?? "Error", status, detail, code };
  if (errors) problem.errors = [...errors];
  problem.request_id = requestId;
  return problem;
}

/**
 * The result of `work`. The engine reports faults with paths into its own input, which is the member `prefix` of the
 * body. This rewrites them to paths into the body.
 */
export async function belowMember<T>(prefix: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof CairnlogError) || !error.details) throw error;
    const details = error.details.map(({ path, message }) => ({ path: prefix + path, message }));
    throw new CairnlogError(error.code, error.message, { cause: error, details });
  }
}
