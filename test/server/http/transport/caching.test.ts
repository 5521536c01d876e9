/** Tags of answers, and the answer to a client that has one of them. */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { Answer } from "#cairnlog/server/http/transport/answer.js";
import { kept, tagOf, unlessHeld } from "#cairnlog/server/http/transport/caching.js";

const options = { status: 201, contentType: "text/plain", headers: { vary: "accept" } };
const answer = new Answer("text", options);
const TAG = `"${createHash("sha256").update("text").digest("base64url")}"`;

test("a tag is made of the bytes, unless the answer brings its own", () => {
  expect(tagOf("text")).toBe(TAG);
  expect(tagOf(Buffer.from("text"))).toBe(TAG);
  const forever = "public, max-age=31536000, immutable";
  expect(kept(answer, "forever", "")).toEqual(new Answer("text", { ...options, etag: TAG, cacheControl: forever }));
  const own = new Answer("text", { etag: '"own"' });
  expect(kept(own, "revalidate", "")).toEqual(new Answer("text", { etag: '"own"', cacheControl: "no-cache" }));
});

test.each([TAG, `W/${TAG}`, `"a", W/"b,c" ,${TAG}`, "*", " * ", `"",${TAG}`])(
  "%s names the tag: 304 without a body",
  (tags) => {
    const held = kept(answer, "revalidate", tags);
    const { headers } = options;
    expect(held).toEqual(new Answer("", { status: 304, etag: TAG, cacheControl: "no-cache", headers }));
  },
);

test.each([TAG.slice(1, -1), TAG.toLowerCase(), '"*"', "**", `"${TAG}`, '"a" "b"'])("%s does not", (tags) => {
  const tagged = kept(answer, "revalidate", "");
  expect(unlessHeld(tagged, tags)).toBe(tagged);
});
