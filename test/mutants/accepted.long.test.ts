/** The lists of accepted mutants fit the code of today. */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { DIST } from "../reliability/planted.js";
import { readAccepted, staleEntries } from "./accepted.js";

test("every entry is of a mutant that the code has", () => {
  const accepted = readAccepted(fileURLToPath(new URL("equivalent", import.meta.url)));
  expect(accepted.length).toBeGreaterThan(300);
  expect(staleEntries(accepted, DIST)).toEqual([]);
});
