/** The lists of accepted mutants: the mutants that an entry matches, and the error if it no longer matches any. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { DIST } from "../reliability/planted.js";
import { type Accepted, accepts, readAccepted, staleEntries } from "./accepted.js";
import { mutantsOf } from "./generate.js";

const [mutant] = mutantsOf(DIST, "engine/base/error.js");
const entry: Accepted = {
  file: "engine/base/error.ts",
  line: mutant!.source,
  kind: mutant!.kind,
  original: mutant!.original,
  reason: "It is an example.",
};
const folder = mkdtempSync(join(tmpdir(), "cairnlog-accepted-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("an entry fits its mutant wherever that has moved, however it is indented, and no other", () => {
  expect(accepts(entry, mutant!)).toBe(true);
  expect(accepts(entry, { ...mutant!, line: 7, column: 9 })).toBe(true);
  expect(accepts({ ...entry, original: "a b" }, { ...mutant!, original: "a\n    b" })).toBe(true);
  for (const member of ["file", "line", "kind", "original"] as const)
    expect(accepts({ ...entry, [member]: "other" }, mutant!), member).toBe(false);
});

test("of two that are alike on one line, an entry fits both, or the one that it numbers", () => {
  const line = "const at = 2 * TILE_WIDTH - 2 * width + (index % width);";
  const both = { ...entry, file: "engine/log/tree/tree.ts", line, kind: "number-1", original: "2" };
  const mutants = mutantsOf(DIST, "engine/log/tree/tree.js");
  const columns = (some: Accepted) => mutants.filter((one) => accepts(some, one)).map(({ column }) => column);
  const [first, second, ...others] = columns(both);
  expect([first! < second!, others]).toEqual([true, []]);
  expect([columns({ ...both, nth: 1 }), columns({ ...both, nth: 2 })]).toEqual([[first], [second]]);
});

test("an entry that fits no mutant is reported, also one of a file that is gone", () => {
  expect(staleEntries([entry], DIST)).toEqual([]);
  const gone = { ...entry, file: "engine/gone.ts" };
  const changed = { ...entry, line: "other" };
  expect(staleEntries([entry, gone, changed], DIST)).toEqual([
    expect.stringMatching(/^engine\/gone\.ts has no mutant/),
    expect.stringMatching(/^engine\/base\/error\.ts has no mutant .* on the line `other` any more\.$/),
  ]);
});

test("every list of a folder is read, and an entry without a reason is refused", () => {
  expect(readAccepted(join(folder, "none"))).toEqual([]);
  writeFileSync(join(folder, "a.json"), JSON.stringify([entry]));
  writeFileSync(join(folder, "b.json"), JSON.stringify([{ ...entry, kind: "other" }]));
  expect(readAccepted(folder)).toEqual([entry, { ...entry, kind: "other" }]);
  writeFileSync(join(folder, "c.json"), JSON.stringify([{ ...entry, reason: "" }]));
  expect(() => readAccepted(folder)).toThrow('c.json: an entry has no "reason"');
});
