/** The mutants that are generated from a piece of code. */
import { expect, test } from "vitest";
import { edits, planted, sample } from "./generate.js";

/** Every mutant of the code, as code. */
const mutated = (code: string) => [...edits(code)].map((edit) => planted(code, edit));

test.each<[code: string, ...mutants: string[]]>([
  ["a < b;", "a <= b;"],
  ["a >= b;", "a > b;"],
  ["a === b;", "a !== b;"],
  ["a + b;", "a - b;"],
  ["a % b;", "a * b;"],
  ["a && b;", "a;", "b;"],
  ["a ?? b;", "a;", "b;"],
  ["a || b || c;", "a || b;", "a || c;", "b || c;"],
  ["!a;", "a;"],
  ["f(true);", ";", "f(false);"],
  ["x = 7;", "x = 8;", "x = 6;"],
  ["x = 0;", "x = 1;"],
  ['x = "code";', 'x = "";'],
  ["x = `sha256:$" + "{y}`;", 'x = "";'],
  ["x = [a];", "x = [];"],
  ["x = { a, ...b };", "x = {  ...b };", "x = { a,  };"],
  [
    "if (a === b) c(); else d();",
    "if (true) c(); else d();",
    "if (false) c(); else d();",
    "if (a === b) ; else d();",
    "if (a === b) c(); else ;",
  ],
  ["x = a ? b : c;", "x = true ? b : c;", "x = false ? b : c;"],
  ["while (a) b();", "while (false) b();", "while (a) ;"],
  ["x = a.some(f);", "x = a.every(f);"],
  ["x = a.filter(f);", "x = a;"],
  ["x = Math.min(a, b);", "x = Math.max(a, b);"],
  ["x.y = z;", ";"],
  ["await f();", ";"],
  ["throw e;", ";"],
  ["x = /^a$/;", "x = /a$/;", "x = /^a/;"],
  ["const f = () => g();", "const f = () => undefined;"],
  ["function f() { return g; }", "function f() { return undefined; }"],
])("%s", (code, ...expected) => {
  expect(mutated(code).sort()).toEqual(expected.sort());
});

test.each([
  'import a from "a";',
  'export * from "a";',
  'x = new Error("code");',
  'x = "A sentence.";',
  'logger.info("code", 7);',
  'x = { title: "code" };',
  "const WAIT_MS = 5000;",
  "x = setTimeout(f, 5000);",
  "while (true) break;",
])("nothing in: %s", (code) => {
  expect(mutated(code)).toEqual([]);
});

test("what an `if` alone guards is left out by its condition, and not once more", () => {
  expect(mutated("if (a) throw b;")).toEqual(["if (true) throw b;", "if (false) throw b;"]);
  expect(mutated("if (a) { b(); }")).toEqual(["if (true) { b(); }", "if (false) { b(); }"]);
});

test("a sample depends on the seed, keeps the order, and has no item twice", () => {
  const items = Array.from({ length: 50 }, (_, i) => ({ id: `${i}` }));
  const chosen = sample(items, 10, 1);
  expect(chosen).toHaveLength(10);
  expect(chosen).toEqual(items.filter((item) => chosen.includes(item)));
  expect(sample(items, 10, 1)).toEqual(chosen);
  expect(sample(items, 10, 2)).not.toEqual(chosen);
  expect(sample(items, 80, 1)).toEqual(items);
});
