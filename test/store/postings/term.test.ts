/** Terms of texts that clients choose, of any length and number. */
import { expect, test } from "vitest";
import { hashedTerm, hashTerm } from "#cairnlog/engine/store/postings/term.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { heldMemory } from "../../held-memory.js";

test("long texts do not stay in memory, of whatever kind", () => {
  const before = heldMemory();
  for (const kind of Object.values(POSTING))
    for (const term of [hashedTerm, hashTerm]) for (let i = 0; i < 100; i++) term(kind, `${i}${"n".repeat(40_000)}`);
  expect(heldMemory() - before).toBeLessThan(2 * 2 ** 20);
});
