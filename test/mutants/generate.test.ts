/** The mutants that are generated from a piece of code. */
import { expect, test } from "vitest";
import { edits, planted, sample } from "./generate.js";

/** A key of two values, as code. */
const key = (one: string, other: string) => `\`\${${one}}:\${${other}}\``;

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
  ["const x = 7;", "const x = 8;", "const x = 6;"],
  ["const x = 0;", "const x = 1;"],
  ['const x = "code";', 'const x = "";'],
  ["const x = `sha256:$" + "{y}`;", 'const x = "";'],
  ["const x = [a];", "const x = [];"],
  ["const x = { a, ...b };", "const x = {  ...b };", "const x = { a,  };"],
  [
    "if (a === b) c(); else d();",
    "if (true) c(); else d();",
    "if (false) c(); else d();",
    "if (a === b) ; else d();",
    "if (a === b) c(); else ;",
  ],
  ["const x = a ? b : c;", "const x = true ? b : c;", "const x = false ? b : c;"],
  ["while (a) b();", "while (false) b();", "while (a) ;"],
  ["const x = a.some(f);", "const x = a.every(f);"],
  ["const x = a.filter(f);", "const x = a;"],
  ["const x = Math.min(a, b);", "const x = Math.max(a, b);"],
  ["x.y = z;", ";"],
  ["x = z;", ";"],
  ["await f();", ";", "f();"],
  ["a(); b();", "; b();", "a(); ;", "b(); a();"],
  ["const a = 1n; b();", "const a = 2n; b();", "const a = 1n; ;"],
  ["f(a, b.c);", ";", "f(b.c, a);"],
  [`const x = ${key("a", "b")};`, 'const x = "";', `const x = ${key('""', "b")};`, `const x = ${key("a", '""')};`],
  ["try { a; } finally { b; }", "{ b; } { a; }"],
  ["throw e;", ";"],
  ["const x = /^a$/;", "const x = /a$/;", "const x = /^a/;"],
  ["const f = () => g();", "const f = () => undefined;"],
  ["function f() { return g; }", "function f() { return undefined; }"],
])("%s", (code, ...expected) => {
  expect(mutated(code).sort()).toEqual(expected.sort());
});

test.each([
  'import a from "a";',
  'export * from "a";',
  'const x = new Error("code");',
  'const x = "A sentence.";',
  'logger.info("code", 7);',
  'const x = { title: "code" };',
  "const WAIT_MS = 5000;",
  "const x = setTimeout(f, 5000);",
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
