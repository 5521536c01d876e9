/** Entries with several exact criteria, found in runs and memory, compared with the simplest implementation. */
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { TURN } from "#cairnlog/engine/log/read/costs.js";
import { matching } from "#cairnlog/engine/log/read/query.js";
import { FLUSH_ENTRIES, Postings } from "#cairnlog/engine/store/postings/postings.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, temporaryFolder } from "../harness.js";

/** Five runs, some of them merged, and what is in memory only. */
const SIZE = 5 * FLUSH_ENTRIES + 1_500;
/** Dense lists, ones that lie apart, and one that is in the middle alone. */
const TAGS: Readonly<Record<string, (index: number) => boolean>> = {
  most: (index) => index % 10 !== 3,
  half: (index) => index % 2 === 0,
  third: (index) => (index * 7919) % 3 === 0,
  few: (index) => index % 97 === 5,
  rare: (index) => index % 2_003 === 1,
  middle: (index) => index > 6_000 && index < 9_000,
  stripes: (index) => Math.floor(index / 1_000) % 2 === 0,
};
const TYPES = ["note", "report", "letter"];

const store = openStore({ path: temporaryFolder(), mapSize: MAP_SIZE });
const USUAL = { ...TURN };
afterAll(() => {
  Object.assign(TURN, USUAL);
  return store.close();
});
const postings = new Postings(store.postings);
for (let from = 0; from < SIZE; from += FLUSH_ENTRIES) {
  const to = Math.min(SIZE, from + FLUSH_ENTRIES);
  const terms = new TermTable();
  for (let index = from; index < to; index++) {
    terms.add(hashedTerm(POSTING.eventType, TYPES[index % 3]!), index);
    for (const [tag, has] of Object.entries(TAGS)) if (has(index)) terms.add(hashedTerm(POSTING.tag, tag), index);
  }
  postings.add(to, terms);
  await postings.settle();
}

test.each([USUAL, { dense: 4_096, blocks: 20 }, { dense: 64, blocks: 1_024 }])(
  "pages of what several criteria have in common, in turns of $dense entries or $blocks blocks",
  (turn) => {
    Object.assign(TURN, turn);
    expect([postings.runCount, postings.size]).toEqual([2, SIZE]);
    const sources = { postings, titles: () => [postings], size: SIZE, entry: () => undefined };
    const criteria = fc.record({
      tags: fc.uniqueArray(fc.constantFrom(...Object.keys(TAGS)), { minLength: 1, maxLength: 3 }),
      eventTypes: fc.option(fc.uniqueArray(fc.constantFrom(...TYPES), { minLength: 1 }), { nil: undefined }),
      from: fc.nat(SIZE),
    });
    fc.assert(
      fc.property(criteria, fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(200), (wanted, at, limit) => {
        const { eventTypes, ...others } = wanted;
        const naive: number[] = [];
        for (let index = wanted.from; index < SIZE; index++)
          if (wanted.tags.every((tag) => TAGS[tag]!(index)) && (eventTypes?.includes(TYPES[index % 3]!) ?? true))
            naive.push(index);
        const offset = Math.floor(at * naive.length);
        const work = matching(sources, eventTypes ? (wanted as never) : others, offset, limit);
        let step = work.next();
        while (!step.done) step = work.next();
        expect(step.value).toMatchObject({ total: naive.length, indexes: naive.slice(offset, offset + limit) });
      }),
    );
  },
);
