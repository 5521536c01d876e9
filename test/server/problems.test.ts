/** How long refusals tell a client to wait. */
import { expect, test } from "vitest";
import { CairnlogError, type ErrorCode } from "#cairnlog/engine/error.js";
import { codesOf, HttpError, problemAnswer, rateLimited } from "#cairnlog/server/http/problems.js";

const waitOf = (error: Error) => problemAnswer(error).headers["retry-after"];

/** Seconds, where the error itself names none. */
const WAITS: Partial<Record<ErrorCode, string>> = {
  overloaded: "1",
  "worker-failed": "1",
  closed: "5",
  "signer-unavailable": "10",
  "storage-failed": "10",
};

test.each(Object.entries(WAITS) as [ErrorCode, string][])("%s: after %s s", (code, wait) => {
  expect(waitOf(new CairnlogError(code, "x"))).toBe(wait);
  expect(waitOf(new CairnlogError(code, "x", { retryAfter: 42 }))).toBe("42");
});

test("every 503 of the engine says how long, and no refusal that waiting does not help", () => {
  expect(codesOf(503).toSorted()).toEqual([...Object.keys(WAITS), "not-ready"].toSorted());
  for (const code of ["forbidden", "invalid-input", "already-exists", "gone", "calendars-unavailable"] as const)
    expect(waitOf(new CairnlogError(code, "x")), code).toBeUndefined();
  expect(waitOf(new HttpError("internal-error", "x"))).toBeUndefined();
  expect(waitOf(new Error("x"))).toBeUndefined();
});

test("a limit that is used up names its seconds in the header and in the sentence", () => {
  const { status, headers, body } = problemAnswer(rateLimited("general", 7));
  expect({ status, wait: headers["retry-after"] }).toEqual({ status: 429, wait: "7" });
  expect(JSON.parse(String(body)).detail).toBe('The limit "general" is used up. Try again in 7 seconds.');
});
