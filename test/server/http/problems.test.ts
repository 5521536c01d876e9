/** Errors: the status and headers of every code, and the part of an error that the client sees. */
import { expect, test } from "vitest";
import { CairnlogError, type ErrorCode } from "#cairnlog/engine/base/error.js";
import {
  belowMember,
  codesOf,
  HttpError,
  partRefusal,
  problemAnswer,
  rateLimited,
  refusalCode,
} from "#cairnlog/server/http/route/problems.js";

const STANDING = { name: "general", limit: 50, window: 60, remaining: 0, reset: 60, exceeded: true } as const;

const ENGINE: Readonly<Record<ErrorCode, number>> = {
  "unsupported-commitment": 400,
  "commitment-key-missing": 400,
  unauthenticated: 401,
  forbidden: 403,
  "proof-required": 403,
  "not-a-writer": 403,
  "key-not-active": 403,
  "not-found": 404,
  "already-exists": 409,
  "wrong-key-status": 409,
  "challenge-used": 409,
  "precondition-failed": 409,
  gone: 410,
  frozen: 410,
  "payload-too-large": 413,
  "invalid-input": 422,
  "invalid-key": 422,
  "private-key": 422,
  "invalid-signature": 422,
  "invalid-proof": 422,
  "not-i-json": 422,
  "decryption-failed": 422,
  "rate-limited": 429,
  "budget-spent": 429,
  "corrupt-log": 500,
  "wrong-operator": 500,
  "in-use": 500,
  "calendars-unavailable": 502,
  overloaded: 503,
  closed: 503,
  "signer-unavailable": 503,
  "storage-failed": 503,
  "storage-full": 503,
  "clock-suspect": 503,
  "not-leader": 503,
  "worker-failed": 503,
  indexing: 503,
};
const HTTP: Readonly<Record<HttpError["code"], number>> = {
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
  "not-leader": 503,
  behind: 503,
  "not-ready": 503,
};
const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  421: "Misdirected Request",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
};
/** Seconds after which to try again, if the error has none. */
const RETRY: Readonly<Partial<Record<ErrorCode, string>>> = {
  overloaded: "1",
  closed: "5",
  "signer-unavailable": "10",
  "storage-failed": "10",
  "not-leader": "1",
  "storage-full": "10",
  "clock-suspect": "60",
  "worker-failed": "1",
};
/** Errors with details of the machine, or without what HTTP knows. Clients get another sentence. */
const HIDDEN: ReadonlySet<string> = new Set([
  ...["overloaded", "closed", "signer-unavailable", "storage-failed", "storage-full", "clock-suspect", "worker-failed"],
  ...["not-leader", "corrupt-log", "wrong-operator", "in-use", "private-key"],
]);
const ID = "request-1";
const SECRET = "The directory /var/lib/secret is gone.";

const answerTo = (error: unknown) => {
  const { status, contentType, cacheControl, etag, headers, body } = problemAnswer(error, ID);
  expect([contentType, cacheControl, etag]).toEqual(["application/problem+json", "no-store", null]);
  return { status, headers, body: JSON.parse(body.toString()) };
};

test.each(Object.entries(ENGINE) as [ErrorCode, number][])("%s is %i", (code, status) => {
  const { status: answered, headers, body } = answerTo(new CairnlogError(code, SECRET));
  expect(answered).toBe(status);
  const detail = HIDDEN.has(code) ? expect.not.stringContaining("secret") : SECRET;
  expect(body).toEqual({ type: "about:blank", title: TITLES[status], status, detail, code, request_id: ID });
  expect(body.detail).toMatch(/^[A-Z].{20,}\.$/);
  const retry = RETRY[code];
  expect(headers).toEqual({
    ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
    ...(retry === undefined ? {} : { "retry-after": retry }),
  });
});

test.each(Object.entries(HTTP) as [HttpError["code"], number][])("%s of HTTP is %i", (code, status) => {
  const { status: answered, headers, body } = answerTo(new HttpError(code, SECRET, { allow: "GET" }));
  expect(answered).toBe(status);
  const title = TITLES[status];
  expect(body).toEqual({ type: "about:blank", title, status, detail: SECRET, code, request_id: ID });
  expect(headers).toEqual({ allow: "GET" });
  expect(answerTo(new HttpError(code, SECRET)).headers).toEqual({});
});

test("the codes of a status are those of HTTP, then those of the engine, each once, and none that only a witness answers", () => {
  const ofWitness = ["invalid-proof"];
  const by = (table: Readonly<Record<string, number>>, status: number) =>
    Object.keys(table).filter((code) => table[code] === status && !ofWitness.includes(code));
  for (const status of Object.keys(TITLES).map(Number)) {
    const codes = codesOf(status);
    expect(new Set(codes)).toEqual(new Set([...by(HTTP, status), ...by(ENGINE, status)]));
    expect(codes).toHaveLength(new Set(codes).size);
    expect(codes.slice(0, by(HTTP, status).length).sort()).toEqual(by(HTTP, status).sort());
  }
  expect(codesOf(418)).toEqual([]);
});

test("details of an error take precedence over the table: seconds to wait, wrong members", () => {
  const details = [{ path: "/a", message: "It is wrong." }];
  const { headers, body } = answerTo(new CairnlogError("overloaded", SECRET, { retryAfter: 7, details }));
  expect(headers).toEqual({ "retry-after": "7" });
  expect(body.errors).toEqual(details);
  expect(answerTo(new CairnlogError("rate-limited", "Wait.", { retryAfter: 0 })).headers).toEqual({
    "retry-after": "0",
  });
  const limited = answerTo(rateLimited({ ...STANDING, reset: 9 }));
  expect(limited).toMatchObject({ status: 429, headers: { "retry-after": "9" }, body: { code: "rate-limited" } });
  expect(limited.body.detail).toBe('The limit "general" is used up. Try again in 9 seconds.');
});

test("a body that holds more requests than are left is told how many may come", () => {
  const { status, headers, body } = answerTo(rateLimited({ ...STANDING, remaining: 12, reset: 9 }, 100));
  expect([status, headers]).toEqual([429, { "retry-after": "9" }]);
  expect(body.detail).toBe(
    'The limit "general" has 12 of 50 left, and this holds 100; nothing was done. Try again in 9 seconds, or send fewer.',
  );
});

test("the refusal of a part of a body is the same problem, and says when to try again", () => {
  const busy = new CairnlogError("overloaded", SECRET, { retryAfter: 7 });
  expect(partRefusal(busy, ID)).toEqual({ status: 503, problem: answerTo(busy).body, retry_after: 7 });
  const absent = new CairnlogError("not-found", "No.");
  expect(partRefusal(absent, ID)).toEqual({ status: 404, problem: answerTo(absent).body });
});

test.each([new Error(SECRET), SECRET, undefined])("anything else is a bare 500: %s", (error) => {
  const { status, headers, body } = answerTo(error);
  expect([status, headers]).toEqual([500, {}]);
  expect(body).toEqual({
    type: "about:blank",
    title: "Internal Server Error",
    status: 500,
    detail: expect.not.stringContaining("secret"),
    code: "internal-error",
    request_id: ID,
  });
  expect(refusalCode(error)).toBe("internal-error");
});

test("refusals are counted by their code", () => {
  expect(refusalCode(new CairnlogError("gone", ""))).toBe("gone");
  expect(refusalCode(new HttpError("not-ready", ""))).toBe("not-ready");
});

test("paths of the engine's input become paths of the request body", async () => {
  const details = [{ path: "/a", message: "It is wrong." }];
  const cause = new CairnlogError("invalid-key", "Bad.", { details });
  const failing = (error: unknown) => belowMember("/payload", Promise.reject(error));
  await expect(failing(cause)).rejects.toMatchObject({
    code: "invalid-key",
    message: "Bad.",
    cause,
    details: [{ path: "/payload/a", message: "It is wrong." }],
  });
  const bare = new CairnlogError("gone", "It was.");
  await expect(failing(bare)).rejects.toBe(bare);
  const foreign = new TypeError("x");
  await expect(failing(foreign)).rejects.toBe(foreign);
  expect(await belowMember("/payload", Promise.resolve(7))).toBe(7);
});

test("a private key that came in a request is said to be exposed, which the engine cannot know", () => {
  const { body } = problemAnswer(new CairnlogError("private-key", "This is a private key."), ID);
  expect(String(body)).toContain("It was sent over the network and must be considered exposed");
});
