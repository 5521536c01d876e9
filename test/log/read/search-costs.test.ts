/**
 * What searches cost, counted: blocks of postings and entries that are read. The same searches with as many answers, in logs
 * of two sizes, and searches that match too much.
 */
import { afterAll, describe, expect, test } from "vitest";
import { GATHERED_IN_ALL, READS } from "#cairnlog/engine/log/read/costs.js";
import { type Criteria, matching } from "#cairnlog/engine/log/read/query.js";
import { addLogTerms } from "#cairnlog/engine/log/state/projection.js";
import { FLUSH_ENTRIES, Postings } from "#cairnlog/engine/store/postings/postings.js";
import { BLOCK_RECORDS } from "#cairnlog/engine/store/postings/run-format.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import type { Entry } from "#cairnlog/engine/verify/tree/entry.js";
import { MAP_SIZE, temporaryFolder } from "../harness.js";

const SMALL = 3 * FLUSH_ENTRIES;
const LARGE = 10 * SMALL;
const LONG = "internationalization";
/** The document of many entries, and their manifest. */
const SAME = "e".repeat(64);
/** Number of entries with the tag `few`. */
const FEW = 82;

/** Entry number `index`. The words and tags named `few` are in the first entries alone, so that both logs have as many of them. */
function payloadOf(index: number) {
  const isFew = index < 2 * FLUSH_ENTRIES;
  const words = ["report", `v${(index * 7919) % 500}`, index % 5 ? "" : `k${(index * 7919) % 50_000}`];
  if (isFew && index % 10 === 1) words.push(`z${index * 31}`, index % 4 ? `${LONG}s` : `${LONG}ed`);
  const tags = [`tag ${index % 10}`];
  if (isFew && index % 100 === 1) tags.push("few");
  if (index % 10) tags.push("most");
  if (index % 2) tags.push("half");
  const document = `sha256:${((index * 2_654_435_761) >>> 0).toString(16).padStart(8, "0")}${"0".repeat(56)}`;
  if (index % 40 === 9) return { tags, document_hash: `sha256:${SAME}`, manifest_hash: SAME };
  return { document_title: words.join(" "), tags, document_hash: isFew && index % 50 === 3 ? LONG : document };
}

const stores: Store[] = [];
afterAll(async () => {
  for (const store of stores) await store.close();
});

/** Postings of `size` such entries, and counts of what is read. */
async function logOf(size: number) {
  const store = openStore({ path: temporaryFolder(), mapSize: MAP_SIZE });
  stores.push(store);
  const counts = { blocks: 0, entries: 0, terms: 0 };
  const tables = Object.assign(Object.create(store.postings) as typeof store.postings, {
    block(run: number, number: number) {
      counts.blocks++;
      return store.postings.block(run, number);
    },
  });
  const postings = new Postings(tables);
  for (let from = 0; from < size; from += FLUSH_ENTRIES) {
    const terms = new TermTable();
    for (let index = from; index < from + FLUSH_ENTRIES; index++)
      addLogTerms(
        { id: index + 1, leafIndex: index, timestamp: "", event_type: "note", payload: payloadOf(index) },
        terms,
      );
    postings.add(from + FLUSH_ENTRIES, terms);
    await postings.settle();
  }
  const sources = {
    postings,
    titles: () => [postings],
    size,
    entry(index: number) {
      counts.entries++;
      return { entry_hashes: [], payload: payloadOf(index) } as unknown as Entry;
    },
  };
  const search = (criteria: Criteria) => {
    Object.assign(counts, { blocks: 0, entries: 0 });
    const work = matching(sources, criteria, 0, 50);
    for (;;) {
      const { done, value } = work.next();
      if (done) return { total: value.total, ...counts };
    }
  };
  return { search, size, runs: postings.runCount };
}

const [small, large] = await Promise.all([logOf(SMALL), logOf(LARGE)]);

const ALIKE: readonly Criteria[] = [
  { title: "z" },
  { title: "z1" },
  { title: LONG },
  { title: `${LONG}e` },
  { tags: ["few"], title: "k" },
  { tags: ["few"], title: "report" },
  { tags: ["few"], title: "r v" },
  { tags: ["few"], title: "z report" },
  { tags: ["few"], title: LONG },
  { tags: ["few"], search: "sha256:0000" },
  { tags: ["few"], eventTypes: ["note"] },
  { search: LONG },
  { search: LONG.slice(0, 5) },
  { search: payloadOf(5).document_hash },
  { search: `sha256:${"f".repeat(64)}` },
  { title: "z", search: LONG },
];

test.each(ALIKE)("%j costs as much in ten times as many entries", (criteria) => {
  const [few, many] = [small.search(criteria), large.search(criteria)];
  expect(many.total).toBe(few.total);
  // Instead of reading the postings of a word, the entries are read that the rarest criterion leaves.
  expect(many.entries).toBeLessThanOrEqual(3 * Math.max(few.entries, few.total, FEW));
  // A look-up reads a block or two of each run.
  expect(many.blocks).toBeLessThanOrEqual(few.blocks * 3 + 4 * large.runs);
});

test.each<Criteria>([
  { title: "k" },
  { title: "v" },
  { title: "z" },
  { title: "a b c d e f g h i j k l m n o p q r s t u v w x y" },
  { search: "sha256:0000" },
  { search: "a" },
])("%j reads the blocks that its postings are in, and no entry", (criteria) => {
  for (const { search, runs } of [small, large]) {
    const { total, blocks, entries } = search(criteria);
    const words = criteria.title?.split(" ").length ?? 4;
    // Two look-ups to count, and what is before and behind the postings in their first and last block.
    expect(blocks).toBeLessThanOrEqual(Math.ceil((2 * total) / BLOCK_RECORDS) + words * runs * 6);
    expect(entries).toBe(0);
  }
});

test.each<[Criteria, lists: number]>([
  [{ tags: ["most", "half"] }, 2],
  [{ tags: ["most", "half"], eventTypes: ["note"] }, 3],
  [{ tags: ["most", "half"], orTag: "tag 7" }, 3],
  [{ tags: ["most", "half", "tag 7"] }, 3],
])("%j reads bitmaps, and at the ends of its lists blocks", (criteria, lists) => {
  for (const { search, runs } of [small, large]) {
    const { blocks, entries } = search(criteria);
    // Of each run: its place in both ends, what is before and behind its bitmaps, and two of those. A short run has none.
    expect(blocks).toBeLessThanOrEqual(lists * runs * 9);
    expect(entries).toBe(0);
  }
});

test.each<Criteria>([{ search: SAME }, { search: `sha256:${SAME}`, tags: ["half"] }, { search: SAME, orTag: "most" }])(
  "no entry is read of those that have the document that %j names",
  (criteria) => {
    for (const { search, size } of [small, large])
      expect(search(criteria)).toMatchObject({ total: Math.ceil((size - 9) / 40), entries: 0 });
  },
);

test("of many words, the postings of the rarest are gathered, and the others looked for in the entries that are left", () => {
  const read: string[] = [];
  const entries: number[] = [];
  const count = GATHERED_IN_ALL / 8;
  const words = "a b c d e f g h i j k l";
  const postings = {
    rangeCount: () => count,
    fillRange(low: string, _: string, bits: Int32Array) {
      read.push(low);
      bits[0]! |= (1 << 5) | (1 << 7);
    },
    list: () => ({ length: 0 }),
  };
  const entry = (index: number) => {
    entries.push(index);
    return { payload: { document_title: index === 7 ? words : "a b c" } };
  };
  const sources = { postings, titles: () => [postings], size: 3_000_000, entry };
  const work = matching(sources as never, { title: words }, 0, 50);
  let step = work.next();
  while (!step.done) step = work.next();
  const { value } = step;
  expect(value).toMatchObject({ total: 1, indexes: [7] });
  expect(read).toHaveLength(8);
  expect(entries).toEqual([5, 7]);
});

describe("what matches too much is refused before it is read", () => {
  /** A log in which everything matches, and nothing may be read. */
  const refusing = (count: number) => {
    const read = (): never => {
      throw new Error("something was read");
    };
    const list = (length: number) => ({ length, at: read, seek: read, window: read });
    const postings = { rangeCount: () => count, range: read, fillRange: read, list: () => list(count) };
    return { postings, titles: () => [postings], size: 10_000_000, entry: read };
  };
  const refused = expect.objectContaining({ code: "invalid-input" });
  const run = (criteria: Criteria, count: number) => matching(refusing(count) as never, criteria, 0, 50).next();

  test.each<[Criteria, number]>([
    [{ title: "k" }, 200_001],
    [{ title: "k report a b c" }, 200_001],
    [{ search: "a" }, 66_667],
    [{ search: "abcdef" }, 66_667],
    [{ search: "sha256:abcd" }, 100_001],
    [{ title: "k", search: "a" }, 200_001],
    [{ title: "k", tags: ["common"] }, 200_001],
    [{ title: "k", eventTypes: ["note"] }, 200_001],
    // Which of these match, only the entries tell.
    [{ title: LONG }, READS + 1],
    [{ search: LONG }, READS + 1],
    [{ search: `sha256:${"a".repeat(40)}` }, READS + 1],
  ])("%j with %i each", (criteria, count) => {
    expect(() => run(criteria, count)).toThrow(refused);
  });
});
