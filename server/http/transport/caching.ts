/**
 * What others may keep of an answer, and for how long. Tags are made from the bytes that are served, so nothing that
 * changes an answer can be forgotten in its tag; a proof brings its own, made of the head that all of it follows from.
 */
import { hash } from "node:crypto";
import { Answer } from "./answer.js";

/**
 * How an answer may be kept: `forever` when it can never become another; `revalidate` when it may, so that whoever keeps
 * it must ask by its tag each time.
 */
export type Keep = "forever" | "revalidate";

export const DIRECTIVES: Readonly<Record<Keep, string>> = {
  forever: "public, max-age=31536000, immutable",
  revalidate: "no-cache",
};

/** RFC 9110 §8.8.3. */
const ENTITY_TAG = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g;

/**
 * `answer` with its tag and its directive; without a body and with status 304 for a client that has it (`ifNoneMatch`,
 * the header as sent, names its tag).
 */
export function kept(answer: Answer, keep: Keep, ifNoneMatch: string): Answer {
  return unlessHeld(tagged(answer, keep), ifNoneMatch);
}

/** `answer` with its tag, unless it has one already, and its directive. */
export function tagged({ body, status, contentType, etag, headers }: Answer, keep: Keep): Answer {
  const cacheControl = DIRECTIVES[keep];
  return new Answer(body, { status, contentType, etag: etag ?? tagOf(body), cacheControl, headers });
}

/** The tag of what is served as `body`. */
export const tagOf = (body: Buffer | string): string => `"${hash("sha256", body, "base64url")}"`;

/** A tagged answer, or 304 without a body for a client that has it. */
export function unlessHeld(answer: Answer, ifNoneMatch: string): Answer {
  // Most requests.
  if (ifNoneMatch === "") return answer;
  const { etag, cacheControl, headers } = answer;
  return names(ifNoneMatch, etag!) ? new Answer("", { status: 304, etag, cacheControl, headers }) : answer;
}

/** RFC 9110 §13.1.2: any of the tags, compared without their `W/`, or `*`. */
function names(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch.trim() === "*") return true;
  for (const [, tag] of ifNoneMatch.matchAll(ENTITY_TAG)) if (tag === etag) return true;
  return false;
}
