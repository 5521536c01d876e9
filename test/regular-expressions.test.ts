/**
 * V8 keeps a place to go back to for each repetition of a group, and throws RangeError when there are too many: 4.47 million
 * characters for base64. So a group is not repeated without end over text whose length somebody else chooses.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const DIST = join(import.meta.dirname, "../dist");

/** Regular expressions that repeat a group without end, and what bounds the text. */
const BOUNDED: Readonly<Record<string, string>> = {
  "engine/verify/keys/publickey.js": "MAX_PEM_CHARACTERS",
  "server/cli/log/witness.js": "an option of the command",
  "server/cli/line/commander.js": "text of the command itself",
  "server/settings/settingvalues.js": "a setting of the operator",
};
/** Of other makers, and pages that are no part of the service. */
const SKIPPED = /^(?:engine\/typebox|server\/(?:explorer|http\/docs))\//;

/** Source of the regular expressions of a file, as its text has them: between slashes, behind what can precede one. */
function expressions(text: string): readonly string[] {
  const code = text.replace(/^\s*(?:\*|\/\/|\/\*).*$/gm, "");
  return [
    ...code.matchAll(/[(=,:[!&|?{};\n]\s*\/((?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+)\/[dgimsuvy]*/g),
  ].map(([, source]) => source!);
}

/** Whether a group is repeated without end. */
function repeatsGroup(source: string): boolean {
  const plain = source.replace(/\\./g, "x").replace(/\[[^\]]*\]/g, "x");
  return /\)(?:[*+]|\{\d+,\})/.test(plain);
}

test("the search finds what it is for", () => {
  const text =
    "const a = /^(?:[A-Z/]{4})*$/;\nif (/^(a|b)+$/u.test(x)) y(/(x){2,}/, /^[(]*$/, /(?:a){3}/);\nconst half = a / b / c;";
  expect(expressions(text).filter(repeatsGroup)).toEqual(["^(?:[A-Z/]{4})*$", "^(a|b)+$", "(x){2,}"]);
});

test("no group is repeated without end over text of any length", () => {
  const files = readdirSync(DIST, { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".js") && /^(engine|server|wasm)\//.test(name) && !SKIPPED.test(name),
  );
  expect(files.length).toBeGreaterThan(300);
  const found = files.filter((name) => expressions(readFileSync(join(DIST, name), "utf8")).some(repeatsGroup));
  expect(found.sort()).toEqual(Object.keys(BOUNDED).sort());
});
