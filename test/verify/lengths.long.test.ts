/**
 * Texts of any length. Whoever answers a client or a monitor chooses how long a text is, so no check may end in an error
 * of the JavaScript engine: a stack or a string that is too large, or a call with too many arguments.
 */
import { expect, test } from "vitest";
import * as claims from "#cairnlog/engine/verify/claims/claims.js";
import * as verify from "#cairnlog/engine/verify/index.js";

/** Beyond what a repeated group of a regular expression bears (4.47 million characters), and beyond arguments of a call. */
const LENGTH = 5_000_000;

const inputs: Readonly<Record<string, string | Uint8Array>> = {
  base64: "A".repeat(LENGTH),
  padded: `${"A".repeat(LENGTH - 2)}==`,
  lines: "A\n".repeat(LENGTH / 2),
  surrogates: "\ud83d\ude00".repeat(LENGTH / 4),
  quotes: JSON.stringify("\\".repeat(LENGTH)),
  number: `-${"9".repeat(LENGTH)}.${"9".repeat(LENGTH)}e${"9".repeat(LENGTH)}`,
  pem: `-----BEGIN PUBLIC KEY-----\n${"AAAA\n".repeat(LENGTH / 5)}-----END PUBLIC KEY-----\n`,
  note: `example.org/log\n1\n${"A".repeat(43)}=\n${"x\n".repeat(LENGTH / 2)}\n\u2014 name ${"A".repeat(LENGTH)}\n`,
  bytes: new Uint8Array(200_000),
};

/** An object with members of heads, entries and envelopes, some of them `value`. */
const shapeOf = (value: unknown) => ({
  ...{ payload: value, payloadType: "a", signatures: [{ sig: value, keyid: "a" }] },
  ...{ root_hash: "a", tree_size: 1, timestamp: "a", signature: value, key_id: "a", tree_version: 2 },
});

/** What V8 says when its own bounds are met. */
const BOUNDS = /call stack|string length|array length|typed array|regular expression|arguments/i;

const functions = Object.entries({ ...verify, ...verify.rfc6962, ...claims }).filter(
  (entry): entry is [string, (...input: readonly unknown[]) => unknown] => typeof entry[1] === "function",
);

/** Of these, a text is no argument: each of its characters would be taken for a member. */
const OF_OBJECTS = new Set(["requestAct", "unwrapBytes"]);

const argumentsOf = (name: string, input: string | Uint8Array): readonly (readonly unknown[])[] => {
  if (OF_OBJECTS.has(name)) return [[shapeOf(input)], ["a", "a", shapeOf(input)]];
  const plain = [[input], ["a", input], [shapeOf(input)]];
  return typeof input === "string" ? plain : [...plain, ["a", input, input]];
};

test.each(functions)("%s", async (name, called) => {
  for (const [kind, input] of Object.entries(inputs))
    for (const given of argumentsOf(name, input)) {
      try {
        await called(...given);
      } catch (error) {
        expect(`${(error as Error).message}`.slice(0, 200), kind).not.toMatch(BOUNDS);
      }
    }
});
