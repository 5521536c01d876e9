/** Cells of an export, as spreadsheets take them that split lines at semicolons or tabs and pay no heed to inner quotation marks. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { csvLine } from "#cairnlog/engine/registry/auditexport.js";
import type { Entry } from "#cairnlog/engine/verify/tree/entry.js";

const SIGNS = ["-", "=", "+", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"];
/** Text of what matters: separators, signs, quotation marks. */
const texts = fc
  .array(fc.constantFrom(...SIGNS, ";", "\t", "\r", "\n", ",", '"', " ", "'", "a", "1"), { maxLength: 12 })
  .map((parts) => parts.join(""));

const entryOf = (event_type: string, payload: Entry["payload"]): Entry => ({
  ...{ id: 7, timestamp: "2026-01-01T00:00:00.000000Z", event_type, payload },
  ...{ previous_hash: "b".repeat(64), entry_hash: "a".repeat(64), chain_version: 2, entry_hashes: [] },
});

/** The formulas that a spreadsheet would find in a line. */
const formulas = (line: string): readonly string[] =>
  line
    .replace(/\r\n$/, "")
    .split(/[;\t\r\n]/)
    .filter((cell) => new RegExp(`^[ "]*[${SIGNS.join("")}]`).test(cell));

/** RFC 4180 §2. */
function cellsOf(line: string): readonly string[] {
  const cells = [...line.replace(/\r\n$/, "").matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^",\r\n]*))/g)];
  return cells.map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain!);
}

test("no text of an entry begins a formula, whatever a line is split at, and the payload keeps its value", () => {
  fc.assert(
    fc.property(texts, texts, texts, texts, (event_type, title, document_hash, fingerprint) => {
      const payload = { title, document_hash, fingerprint, [title]: { deep: [fingerprint, title] } };
      const line = csvLine(entryOf(event_type, payload));
      expect(formulas(line)).toEqual([]);
      const cells = cellsOf(line);
      expect(cells).toHaveLength(9);
      expect(JSON.parse(cells[8]!)).toEqual(payload);
    }),
    { numRuns: 2_000 },
  );
});

test("a text without formulas is exported as it is", () => {
  const cells = cellsOf(csvLine(entryOf("https://example.org/a;b?c=d", { title: "a; b\tc - d" })));
  expect(cells[2]).toBe("https://example.org/a;b?c=d");
  expect(cells[8]).toBe('{"title":"a; b\\tc - d"}');
});
