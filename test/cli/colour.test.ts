/** Colours: on a terminal that has them, and nowhere else; and what other parties wrote cannot add any. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { verdictOf } from "#cairnlog/engine/verify/index.js";
import { bundleReport } from "#cairnlog/server/cli/printing/verdict.js";
import { facts, table } from "#cairnlog/server/cli/terminal/table.js";

const { isTTY, hasColors } = process.stdout;

beforeEach(() => {
  Object.assign(process.stdout, { isTTY: true, hasColors: () => true });
});
afterEach(() => {
  Object.assign(process.stdout, { isTTY, hasColors });
});

const FAILED = verdictOf([{ name: "format", ok: false, detail: "\u001b[32mfine" }]);

test("verdicts are red and green on a terminal, and escapes of others are shown as text", () => {
  const shown = bundleReport("a\u001b[0m.txt", FAILED, null);
  expect(shown).toBe(
    "a\\u{1b}[0m.txt: \u001b[31mNOT verified\u001b[39m\n  \u001b[31mWRONG \u001b[39m format: \\u{1b}[32mfine",
  );
});

test.each([
  ["a terminal without colours, or NO_COLOR", { isTTY: true, hasColors: () => false }],
  ["a file", { isTTY: false }],
])("there are none on %s", (_, stream) => {
  Object.assign(process.stdout, stream);
  expect(bundleReport("a.txt", FAILED, null)).not.toContain("\u001b");
  expect(facts([["name", "value"]])).toBe("name  value");
  expect(table(["A"], [["b"]]).styled).toBe("A\nb");
});

test("facts without a value are left out, and a value is one line", () => {
  Object.assign(process.stdout, { isTTY: false });
  expect(
    facts([
      ["a", "1\n2"],
      ["long", 3],
      ["none", null],
      ["nothing", undefined],
    ]),
  ).toBe("a     1\\u{a}2\nlong  3");
});

test("the columns of a table are as wide as their contents", () => {
  Object.assign(process.stdout, { isTTY: false });
  expect(
    table(
      ["NAME", "N"],
      [
        ["a", "1"],
        ["longer", "22"],
      ],
    ).styled,
  ).toBe("NAME    N\na       1\nlonger  22");
});
