/** Finding and paging across seams: places where imported history has a gap between ids or goes back in time. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import type { Criteria } from "#cairnlog/engine/log/read/query.js";
import { Seams } from "#cairnlog/engine/log/read/seams.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator } from "./harness.js";
import { chain, momentNumber, type Wanted } from "./history/entries.js";

/** Minutes since the beginning of 2020, and whether the entry is tagged. */
type Moment = readonly [minute: number, isTagged?: boolean];

const micros = (minute: number) => Date.parse(momentNumber(minute)) * 1000;
const wanted = ([minute, isTagged = false]: Moment, n: number): Wanted => ({
  timestamp: momentNumber(minute),
  event_type: n % 2 ? "odd" : "even",
  payload: { n, tags: isTagged ? ["tagged"] : [] },
});

/** A closed log of version 1 entries with these minutes. */
async function imported(moments: readonly Moment[], ids: readonly number[] = []): Promise<string> {
  const path = `${temporaryFolder()}/log`;
  const entries = chain(
    moments.map((moment, n) => ({ ...wanted(moment, n), ...(ids[n] === undefined ? {} : { id: ids[n] }) })),
  );
  await importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, entries);
  return path;
}

async function opened(path: string | Promise<string>): Promise<LogWriter> {
  return (await openTestLog({ path: await path })).log;
}

/** Leaf indexes of every page, and the totals of all pages. */
function paged(log: LogWriter, criteria: Criteria, limit: number): { indexes: number[]; totals: Set<number> } {
  const indexes: number[] = [];
  const totals = new Set<number>();
  for (let offset = 0; ; offset += limit) {
    const page = log.match(criteria, offset, limit);
    expect(page.indexes.length).toBeLessThanOrEqual(limit);
    totals.add(page.total);
    indexes.push(...page.indexes);
    if (page.indexes.length < limit) return { indexes, totals };
  }
}

describe("a date range over a seam", () => {
  // Two steps back, at leaves 4 and 8.
  const MINUTES = [10, 20, 30, 40, 15, 25, 35, 45, 5, 20, 30, 50];
  const path = imported(MINUTES.map((minute, n) => [minute, n % 3 !== 0]));

  test("is a stretch on each side, none where nothing was made then", async () => {
    const log = await opened(path);
    const between = (from: number, to: number) =>
      log.between(micros(from), micros(to)).map((stretch) => [stretch.from, stretch.to]);
    expect(between(20, 35)).toEqual([
      [1, 3],
      [5, 6],
      [9, 11],
    ]);
    // Both bounds: `from` is included, `to` is not.
    expect(between(40, 41)).toEqual([[3, 4]]);
    expect(between(39, 40)).toEqual([]);
    expect(between(15, 16)).toEqual([[4, 5]]);
    expect(between(14, 15)).toEqual([]);
    expect(between(45, 50)).toEqual([[7, 8]]);
    expect(between(5, 6)).toEqual([[8, 9]]);
    expect(between(50, 51)).toEqual([[11, 12]]);
    expect(between(51, 99)).toEqual([]);
    // Adjacent stretches are merged.
    expect(between(5, 51)).toEqual([[0, 12]]);
    expect(between(10, 46)).toEqual([
      [0, 8],
      [9, 11],
    ]);
    expect(between(30, 26)).toEqual([]);
    expect(between(30, 30)).toEqual([]);
    expect(log.between(0, Number.POSITIVE_INFINITY)).toEqual([{ from: 0, to: 12 }]);
    expect(log.between(micros(45), Number.POSITIVE_INFINITY)).toEqual([
      { from: 7, to: 8 },
      { from: 11, to: 12 },
    ]);
  });

  test("is found without looking at entries where a seam has the time", async () => {
    const store = openStore({ path: await path, readOnly: true, mapSize: MAP_SIZE });
    let looks = 0;
    const seams = new Seams(store, (leafIndex) => {
      looks++;
      return micros(MINUTES[leafIndex]!);
    });
    seams.restore();
    const looksFor = (from: number, to: number) => {
      looks = 0;
      seams.between(micros(from), to === Number.POSITIVE_INFINITY ? to : micros(to), MINUTES.length);
      return looks;
    };
    // Only of the first entry of all, and of the last, no seam has the time.
    expect(looksFor(0, Number.POSITIVE_INFINITY)).toBe(3);
    expect(looksFor(50, Number.POSITIVE_INFINITY)).toBe(2);
    expect(looksFor(0, 5)).toBe(6);
    expect(looksFor(15, 46)).toBe(8);
    await store.close();
  });

  const SELECTED: [string, Criteria, (n: number) => boolean][] = [
    ["everything", {}, () => true],
    ["one list", { tags: ["tagged"] }, (n) => n % 3 !== 0],
    ["two lists", { tags: ["tagged"], eventTypes: ["odd"] }, (n) => n % 3 !== 0 && n % 2 === 1],
    ["an end", { from: 5 }, (n) => n >= 5],
    ["a list's end", { from: 2, tags: ["tagged"] }, (n) => n >= 2 && n % 3 !== 0],
  ];
  test.each(SELECTED)("is paged without gap or repetition: %s", async (_, criteria, selects) => {
    const log = await opened(path);
    for (const [from, to] of [
      [0, 99],
      [20, 35],
      [30, 50],
      [5, 16],
    ] as const) {
      const expected = MINUTES.flatMap((minute, n) => (minute >= from && minute < to && selects(n) ? [n] : []));
      for (let limit = 1; limit <= MINUTES.length + 1; limit++) {
        const within = log.between(micros(from), micros(to));
        const { indexes, totals } = paged(log, { ...criteria, within }, limit);
        expect(indexes).toEqual(expected);
        expect([...totals]).toEqual([expected.length]);
      }
    }
  });
});

test("for any imported history, pages of a date range match the plain filter", async () => {
  const moment = fc.tuple(fc.nat(12), fc.boolean());
  const range = fc.tuple(fc.nat(13), fc.nat(13), fc.integer({ min: 1, max: 9 }), fc.nat(30));
  await fc.assert(
    fc.asyncProperty(
      fc.array(moment, { minLength: 1, maxLength: 30 }),
      fc.array(range, { minLength: 20, maxLength: 20 }),
      async (moments, ranges) => {
        const log = await opened(imported(moments));
        for (const [from, to, limit, start] of ranges) {
          const within = log.between(micros(from), micros(to));
          for (const [i, { from: first, to: end }] of within.entries()) {
            expect(end).toBeGreaterThan(first);
            if (i) expect(first).toBeGreaterThan(within[i - 1]!.to);
          }
          const plain = moments.flatMap(([minute], n) => (minute >= from && minute < to && n >= start ? [n] : []));
          expect(paged(log, { within, from: start }, limit).indexes).toEqual(plain);
          const tagged = plain.filter((n) => moments[n]![1]);
          expect(paged(log, { within, from: start, tags: ["tagged"] }, limit).indexes).toEqual(tagged);
        }
        await log.close();
      },
    ),
    { numRuns: 20 },
  );
});

describe("ids over a seam", () => {
  const IDS = [1, 2, 5, 6, 7, 20, 21];
  const path = imported(
    IDS.map((id) => [id]),
    IDS,
  );

  test("lead to their leaves, and those that were left out to none", async () => {
    const log = await opened(path);
    for (let id = -1; id <= 23; id++) {
      const leafIndex = IDS.indexOf(id);
      expect(log.leafIndexOf(id), `${id}`).toBe(leafIndex < 0 ? undefined : leafIndex);
      expect(log.entry(id)?.id).toBe(leafIndex < 0 ? undefined : id);
      if (id >= 0) expect(log.leafIndexAfter(id), `${id}`).toBe(IDS.filter((other) => other <= id).length);
    }
    for (const id of [1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) expect(log.leafIndexOf(id)).toBeUndefined();
  });

  test("go on behind the last one", async () => {
    const log = await opened(path);
    const { log_entry_id, leaf_index } = await log.append({ event_type: "note", payload: {} });
    expect([log_entry_id, leaf_index]).toEqual([22, 7]);
    expect(log.leafIndexOf(22)).toBe(7);
    expect(log.leafIndexOf(23)).toBeUndefined();
  });
});
