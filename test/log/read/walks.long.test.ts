/** Walks through postings that the test makes up: where they end, where they pause, and how much a search may match. */
import { afterAll, describe, expect, test } from "vitest";
import { TURN } from "#cairnlog/engine/log/read/costs.js";
import { arrayList, type IndexList } from "#cairnlog/engine/log/read/index-list.js";
import { type Criteria, matching } from "#cairnlog/engine/log/read/query.js";
import { hashedTerm, hashTerm, hexPrefixTerm, textPrefixTerm } from "#cairnlog/engine/store/postings/term.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import type { Entry } from "#cairnlog/engine/verify/tree/entry.js";
import { heldMemory } from "../../held-memory.js";
import { openTestLog } from "../harness.js";

/** Short turns, so that the lists that outlast one are short, too. */
const USUAL = { ...TURN };
Object.assign(TURN, { dense: 2 ** 16 });
afterAll(() => Object.assign(TURN, USUAL));

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);
const HASH = "ab".repeat(32);

/** Postings of these lists, in a log of `size` entries whose documents are `document`. */
function sourcesOf(lists: Readonly<Record<string, readonly number[]>>, size: number, document = `sha256:${HASH}`) {
  const between = (low: string, high: string) =>
    Object.keys(lists)
      .sort()
      .filter((term) => term >= low && term <= high);
  const sources = {
    /** Changes with each append; a list that was made before is not valid any more. */
    version: 0,
    size,
    titles: () => [],
    entry: () => ({ entry_hashes: [], payload: { document_hash: document } }) as unknown as Entry,
    postings: {
      list(term: string) {
        const made = sources.version;
        const list = arrayList(lists[term] ?? []);
        const valid = <Args extends unknown[], T>(read: (...args: Args) => T) => {
          return (...args: Args): T => {
            if (sources.version !== made) throw new Error("The list is out of date.");
            return read(...args);
          };
        };
        return {
          length: list.length,
          at: valid(list.at),
          seek: valid(list.seek),
          window: valid(list.window),
          between: valid(list.between),
          fill: valid(list.fill),
          mark: valid(list.mark),
        };
      },
      range: (low: string, high: string) => between(low, high).flatMap((term) => lists[term]!),
      fillRange(low: string, high: string, bits: Int32Array) {
        for (const index of sources.postings.range(low, high)) bits[index >>> 5]! |= 1 << (index & 31);
      },
      rangeCount: (low: string, high: string) => between(low, high).reduce((sum, term) => sum + lists[term]!.length, 0),
    },
  };
  return sources;
}

/** The matches, and the number of pauses. In each pause an entry is appended. */
function walked(sources: ReturnType<typeof sourcesOf>, criteria: Criteria, limit = 10) {
  const work = matching(sources, criteria, 0, limit);
  for (let pauses = 0; ; pauses++) {
    const { done, value } = work.next();
    if (done) return { ...value, pauses };
    sources.version++;
  }
}
const tag = (text: string) => hashedTerm(POSTING.tag, text);

describe("entries that were appended later", () => {
  const late = [3, 9, 10, 12];
  test.each<[string, Record<string, readonly number[]>, Criteria]>([
    ["a whole hash", { [hexPrefixTerm(POSTING.prefixedHash, HASH)]: late }, { search: HASH }],
    ["the digits of a hash", { [hexPrefixTerm(POSTING.prefixedHash, HASH)]: late }, { search: "sha256:abab" }],
    ["a tag", { [tag("a")]: late }, { tags: ["a"] }],
    [
      "a tag and a type",
      { [tag("a")]: late, [hashedTerm(POSTING.eventType, "b")]: late },
      { tags: ["a"], eventTypes: ["b"] },
    ],
    ["tags or one instead", { [tag("a,b")]: late }, { tags: ["a", "b"], orTag: "a,b" }],
  ])("are not found by %s", (_, lists, criteria) => {
    expect(walked(sourcesOf(lists, 10), criteria)).toEqual({ total: 2, indexes: [3, 9], pauses: 0 });
  });

  test("are not found by a text", () => {
    const sources = sourcesOf({ [textPrefixTerm(POSTING.fieldText, "draft")]: late }, 10, "draft");
    expect(walked(sources, { search: "DRA" })).toEqual({ total: 2, indexes: [3, 9], pauses: 0 });
  });
});

test("words of titles that are filed in a pause are found once, wherever they were before", () => {
  const word = (text: string) => textPrefixTerm(POSTING.titleWord, text);
  const titlesOf = (indexes: number[]) =>
    sourcesOf({ [word("aa")]: indexes, [word("ab")]: indexes, [word("b")]: indexes, [word("c")]: indexes }, 6).postings;
  const [old, newer] = [titlesOf([0, 1, 2]), titlesOf([3, 4, 5])];
  for (let filedAt = 0; filedAt < 3; filedAt++) {
    let pauses = 0;
    const titles = () => (pauses < filedAt ? [titlesOf([0]), old, newer] : [old, newer]);
    const work = matching({ ...sourcesOf({}, 6), titles }, { title: "a b c" }, 0, 10);
    let found = work.next();
    for (; !found.done; found = work.next()) pauses++;
    expect(found.value, `filed in pause ${filedAt}`).toMatchObject({ total: 6, indexes: upTo(6) });
    expect(pauses).toBe(2);
  }
});

describe("a pause comes", () => {
  const HALF = TURN.dense / 2;
  test.each([
    [HALF, 0],
    [HALF + 1, 1],
    [TURN.dense, 1],
    [TURN.dense + 1, 2],
  ])("in a walk through two lists of %i entries: %i of them", (count, pauses) => {
    const lists = { [tag("a")]: upTo(count), [tag("b")]: upTo(count) };
    const found = walked(sourcesOf(lists, count), { tags: ["a", "b"] }, count);
    expect(found).toEqual({ total: count, indexes: upTo(count), pauses });
  });

  test.each([
    [HALF, 0],
    [HALF + 1, 1],
    [TURN.dense + 1, 2],
  ])("in a walk through %i entries with one term and a tag: %i of them", (count, pauses) => {
    const lists = { [hexPrefixTerm(POSTING.prefixedHash, HASH)]: upTo(count), [tag("a")]: upTo(count) };
    const found = walked(sourcesOf(lists, count), { search: `sha256:${HASH.slice(0, 32)}`, tags: ["a"] }, count);
    expect(found).toEqual({ total: count, indexes: upTo(count), pauses });
  });

  test("in a walk through tags or one instead, which share a turn", () => {
    const quarter = TURN.dense / 4;
    const lists = { [tag("a")]: upTo(quarter + 1), [tag("b")]: upTo(quarter + 1), [tag("a,b")]: [7, quarter] };
    const found = walked(sourcesOf(lists, quarter + 1), { tags: ["a", "b"], orTag: "a,b" }, 1);
    expect(found).toEqual({ total: quarter + 1, indexes: [0], pauses: 1 });
  });

  test("not where one list is as much longer than another", () => {
    const size = 600_000;
    const lists = { [tag("a")]: upTo(300).map((i) => 2_000 * i), [tag("b")]: upTo(size), [tag("c")]: [1, 2_000] };
    expect(walked(sourcesOf(lists, size), { tags: ["a", "b"] }, 0)).toMatchObject({ total: 300, pauses: 0 });
    expect(walked(sourcesOf(lists, size), { tags: ["c", "b"] }, 9)).toEqual({
      total: 2,
      indexes: [1, 2_000],
      pauses: 0,
    });
  });

  test("between two words whose postings are gathered", () => {
    const word = (text: string) => textPrefixTerm(POSTING.titleWord, text);
    const lists = { [word("aa")]: upTo(100), [word("ab")]: [99, 100], [word("b")]: upTo(200), [word("c")]: upTo(300) };
    const sources = sourcesOf(lists, 5000);
    sources.titles = () => [sources.postings] as never;
    expect(walked(sources, { title: "a" }, 5000)).toEqual({ total: 101, indexes: upTo(101), pauses: 0 });
    expect(walked(sources, { title: "a b c" }, 5000)).toEqual({ total: 101, indexes: upTo(101), pauses: 2 });
  });

  test("after 64 entries that are read", () => {
    const lists = { [hexPrefixTerm(POSTING.prefixedHash, HASH)]: upTo(130), [hashTerm(POSTING.document, HASH)]: [1] };
    const found = walked(sourcesOf(lists, 5000), { search: HASH }, 5000);
    expect(found).toEqual({ total: 130, indexes: upTo(130), pauses: 2 });
  });
});

describe("a search that matches too much", () => {
  const tooWide = (message: string) =>
    expect.objectContaining({
      code: "invalid-input",
      message: `/search: ${message}`,
      details: [{ path: "/search", message }],
    });

  test("more than 200,000 entries", () => {
    const found = (count: number) =>
      walked(sourcesOf({ [textPrefixTerm(POSTING.fieldText, "draft")]: upTo(count) }, 300_000, "draft"), {
        search: "dra",
      });
    expect(found(200_000)).toMatchObject({ total: 200_000 });
    expect(() => found(200_001)).toThrow(
      tooWide("More than 200000 matches would have to be looked at. Give more of it."),
    );
  });

  const empty = sourcesOf({}, 10);
  test.each(["s", "sh", "SHA256", "sha256:", "sha256:a", "sha256:ab", "SHA256:ABC"])("%s", (search) => {
    expect(() => walked(empty, { search })).toThrow(tooWide("Give at least 4 digits behind sha256:, or digits alone."));
  });

  test.each(["sha256:abcd", "sha256:abg", "sha256:g", "shb", "a", "ab", "ha256:", "sha256:-"])(
    "but not %s",
    (search) => {
      expect(walked(empty, { search })).toEqual({ total: 0, indexes: [], pauses: 0 });
    },
  );
});

test("a text that ends with what fills an index up matches only what has it", async () => {
  const { log } = await openTestLog();
  const note = (document_hash: string) => ({ event_type: "note", payload: { document_hash } });
  await log.append([note("ab\0c"), note("xy"), note("xy\0"), note(`${"y".repeat(15)}z`), note(`${"y".repeat(16)}z`)]);
  const found = (search: string) => log.match({ search }, 0, 10).indexes;
  expect([found("xy"), found("xy\0"), found("xy\0\0")]).toEqual([[1, 2], [2], []]);
  expect([found("y".repeat(15)), found("y".repeat(16)), found("y".repeat(17))]).toEqual([[3, 4], [4], []]);
});

describe("lists in memory", () => {
  test("a rank past the end is refused", () => {
    const list = arrayList([4, 7]);
    expect([list.at(0), list.at(1), list.length]).toEqual([4, 7, 2]);
    for (const rank of [2, 3, -1]) expect(() => list.at(rank)).toThrow(RangeError);
    expect([list.window(5, 5), list.window(8, 1), list.window(0, 1)]).toEqual([[7], [], [4]]);
  });
});

describe("a walk through most of a log", () => {
  const SIZE = 4_000_000;
  /** Every index, without memory for it. */
  const every: IndexList = {
    length: SIZE,
    at: (rank) => rank,
    seek: (index) => index,
    window: (index, count) => Array.from({ length: Math.min(count, SIZE - index) }, (_, i) => index + i),
    between: (from, to) => Array.from({ length: to - from }, (_, i) => from + i),
    fill: (bits) => bits.fill(-1),
    mark: (_, marks) => marks.fill(1),
  };

  test.each<[string, Criteria]>([
    ["by two criteria", { tags: ["a", "b"] }],
    ["by two criteria, or one instead", { tags: ["a", "b"], orTag: "a,b" }],
  ])("keeps the matches of one page, %s", (_, criteria) => {
    const sources = { ...sourcesOf({}, SIZE), postings: { list: () => every, *range() {} } };
    const work = matching(sources as never, criteria, SIZE - 3, 10);
    const before = heldMemory();
    let most = 0;
    for (let pauses = 1; ; pauses++) {
      const { done, value } = work.next();
      if (done) {
        expect(value).toMatchObject({ total: SIZE, indexes: [SIZE - 3, SIZE - 2, SIZE - 1] });
        break;
      }
      if (pauses % 4 === 0) most = Math.max(most, heldMemory() - before);
    }
    // All of them take 8 bytes each.
    expect(most).toBeLessThan(SIZE);
  });
});
