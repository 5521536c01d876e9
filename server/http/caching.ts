/**
 * What others may keep of an answer, and for how long. Tags are made from the bytes that are served, so nothing that
 * changes an answer can be forgotten in its tag.
 */
import { hash } from "node:crypto";
import { Answer } from "./answer.js";

/**
 * How an answer may be kept: `forever` when it can never become another; `revalidate` when it may, so that whoever keeps
 * it must ask by its tag each time.
 */
export type Keep = "forever" | "revalidate";

const DIRECTIVES: Readonly<Record<Keep, string>> = {
  forever: "public, max-age=31536000, immutable",
  revalidate: "no-cache",
};

/** For every answer that says nothing of its own: refusals, tokens, what depends on who asks. */
export const NOT_KEPT = "no-store";

/** RFC 9110 §8.8.3. */
const ENTITY_TAG = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g;

/**
 * `answer` with its tag and its directive; without a body and with status 304 for a client that has it (`ifNoneMatch`,
 * the header as sent, names its tag).
 */
export function kept(answer: Answer, keep: Keep, ifNoneMatch: string): Answer {
  const etag = `"${hash("sha256", answer.body, "base64url")}"`;
  const headers = { ...answer.headers, etag, "cache-control": DIRECTIVES[keep] };
  if (names(ifNoneMatch, etag)) return new Answer(Buffer.alloc(0), { status: 304, headers });
  return new Answer(answer.body, { status: answer.status, contentType: answer.contentType, headers });
}

/** RFC 9110 §13.1.2: any of the tags, compared without their `W/`, or `*`. */
function names(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch.trim() === "*") return true;
  for (const [, tag] of ifNoneMatch.matchAll(ENTITY_TAG)) if (tag === etag) return true;
  return false;
}
