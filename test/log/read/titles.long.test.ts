/** Finding entries by the words of their titles, compared with the simplest filter. */
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import type { EventInput } from "#cairnlog/engine/index.js";
import { TURN } from "#cairnlog/engine/log/read/costs.js";
import { openTestLog } from "../harness.js";

const USUAL = { ...TURN };
afterEach(() => Object.assign(TURN, USUAL));

const titled = (document_title: string): EventInput => ({ event_type: "note", payload: { document_title } });
const found = (log: { match: Awaited<ReturnType<typeof openTestLog>>["log"]["match"] }, title: string) =>
  log.match({ title }, 0, 200).indexes;

/** Words that share beginnings, beyond the sixteen bytes that an index keeps, too. */
const WORDS = ["report", "Report", "reports", "re", "été", "ÉTÉ", `${"x".repeat(16)}y`, `${"x".repeat(16)}z`, "2026"];
const title = fc.array(fc.constantFrom(...WORDS), { maxLength: 4 }).map((words) => words.join(" - "));
const query = fc
  .array(
    fc.tuple(fc.constantFrom(...WORDS), fc.integer({ min: 1, max: 17 })).map(([word, length]) => word.slice(0, length)),
    { minLength: 1, maxLength: 3 },
  )
  .map((words) => words.join(" "));

test("finds what the simplest filter finds", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(title, { maxLength: 12 }), fc.array(query, { maxLength: 8 }), async (titles, queries) => {
      const { log } = await openTestLog();
      if (titles.length) await log.append(titles.map(titled));
      for (const wanted of queries) {
        const beginnings = wanted.toLowerCase().split(" ");
        const matching = titles.flatMap((text, index) => {
          const words = text.toLowerCase().split(" - ");
          return beginnings.every((beginning) => words.some((word) => word.startsWith(beginning))) ? [index] : [];
        });
        expect(found(log, wanted)).toEqual(matching);
      }
      await log.close();
    }),
    { numRuns: 40 },
  );
});

test("goes with other criteria and with pages", async () => {
  const { log } = await openTestLog();
  const entries = Array.from({ length: 9 }, (_, i) => ({
    event_type: i % 2 ? "odd" : "even",
    payload: { document_title: `Part ${i}`, tags: i < 5 ? ["early"] : [] },
  }));
  await log.append(entries);
  expect(log.match({ title: "part", eventTypes: ["odd"], tags: ["early"] }, 0, 10)).toEqual({
    total: 2,
    indexes: [1, 3],
  });
  expect(log.match({ title: "part" }, 3, 2)).toEqual({ total: 9, indexes: [3, 4] });
});

test("a text without a letter or a digit is refused", async () => {
  const { log } = await openTestLog();
  expect(() => found(log, "…!")).toThrow(expect.objectContaining({ code: "invalid-input" }));
});

test("many entries with one word, and few with another: pauses change nothing", async () => {
  Object.assign(TURN, { dense: 1_000, blocks: 1 });
  const { log } = await openTestLog();
  const count = 3 * 1024 + 5;
  const titles = Array.from({ length: count }, (_, i) => titled(`common ${i % 1000 === 7 ? "rare" : `w${i}`}`));
  await log.append(titles);
  expect(log.match({ title: "common" }, 0, 0).total).toBe(count);
  expect(found(log, "rare common")).toEqual([7, 1007, 2007, 3007]);
  expect(log.match({ title: "w" }, 0, 0).total).toBe(count - 4);
  const expected = log.match({ title: "com w" }, count - 10, 10);
  expect(expected.total).toBe(count - 4);
  const work = log.matching({ title: "com w" }, count - 10, 10);
  let pauses = 0;
  let step = work.next();
  for (; !step.done; step = work.next(), pauses++) await log.append(titled("common w and late"));
  expect(pauses).toBeGreaterThan(1);
  expect(step.value).toEqual(expected);
});
