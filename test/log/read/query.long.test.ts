/** Queries compared with the simplest filter: the contract's rules applied to every entry. */
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import type { Entry, EventInput } from "#cairnlog/engine/index.js";
import { TURN } from "#cairnlog/engine/log/read/costs.js";
import type { Criteria } from "#cairnlog/engine/log/read/query.js";
import { parseTimestamp } from "#cairnlog/engine/log/state/clock.js";
import { openTestLog } from "../harness.js";

const USUAL = { ...TURN };
afterEach(() => Object.assign(TURN, USUAL));

const hex = (length: number) =>
  fc
    .array(fc.constantFrom(..."0123456789abcdef"), { minLength: length, maxLength: length })
    .map((digits) => digits.join(""));
/** Few and similar values, so that prefixes are shared beyond the sixteen bytes in an index. */
const STEM = "ab12".repeat(16);
const hash = fc.oneof(
  hex(2).map((end) => STEM.slice(0, 62) + end),
  hex(2).map((start) => start + STEM.slice(2)),
  hex(64),
);
const stored = fc.oneof(
  hash,
  hash.map((digest) => `sha256:${digest}`),
  hash.map((digest) => digest.toUpperCase()),
  hash.map((digest) => `SHA256:${digest}`),
  hash.map((digest) => digest + digest),
  hex(5).map((digits) => `sha256:${digits}`),
  fc.constantFrom(
    "Draft",
    "draft é",
    "sha256:",
    "sha",
    "ab12",
    `draft${"x".repeat(20)}y`,
    `draft${"x".repeat(20)}z`,
    "",
  ),
);
const payload = fc.record(
  {
    document_hash: fc.oneof(stored, fc.constant(7)),
    manifest_hash: stored,
    fingerprint: stored,
    old_fingerprint: stored,
    signer_fingerprint: stored,
    signer_key_fingerprint: stored,
    endorsed_key_fingerprint: stored,
    endorser_key_fingerprint: stored,
    tags: fc.oneof(
      fc.array(fc.constantFrom("News", "news ", " news", "é", "É", "a,b", 4), { maxLength: 3 }),
      fc.constant("news"),
    ),
  },
  { requiredKeys: [] },
);
const event = fc.record({ event_type: fc.constantFrom("one", "two", "three"), payload });

const FIELDS = [
  "fingerprint",
  "old_fingerprint",
  "signer_fingerprint",
  "signer_key_fingerprint",
  "endorsed_key_fingerprint",
  "endorser_key_fingerprint",
];
const bare = (text: string) => text.toLowerCase().replace(/^sha256:(?=[0-9a-f]{64}$)/, "");
const lower = (value: unknown) => (typeof value === "string" ? value.toLowerCase() : undefined);

/** docs/spec §2.6, word for word. */
function matches(entry: Entry, criteria: Criteria): boolean {
  const { payload: held } = entry;
  const tags = Array.isArray(held!.tags) ? held!.tags.map(lower) : [];
  if (criteria.eventTypes && !criteria.eventTypes.includes(entry.event_type)) return false;
  const hasTags = !criteria.tags || criteria.tags.every((tag) => tags.includes(tag.toLowerCase()));
  if (!hasTags && !(criteria.orTag && tags.includes(criteria.orTag.toLowerCase()))) return false;
  if (
    criteria.fingerprint !== undefined &&
    !FIELDS.some((field) => typeof held![field] === "string" && bare(held![field]) === bare(criteria.fingerprint!))
  )
    return false;
  if (
    criteria.document !== undefined &&
    !(typeof held!.document_hash === "string" && bare(held!.document_hash) === bare(criteria.document))
  )
    return false;
  if (criteria.search === undefined) return true;
  const term = criteria.search.toLowerCase();
  if (entry.entry_hashes.some(({ digest_hex }) => digest_hex.startsWith(term))) return true;
  const values = ["document_hash", "manifest_hash", "fingerprint"].flatMap((field) => lower(held![field]) ?? []);
  const complete = /^(sha256:)?([0-9a-f]{64}|[0-9a-f]{128})$/.exec(term)?.[2];
  return complete
    ? values.some((value) => value === complete || value === `sha256:${complete}`)
    : values.some((value) => value.startsWith(term));
}

/** Nearly every entry has a hash with this beginning. */
const isTooWide = (search: string | undefined) =>
  /^(?:s(?:h(?:a(?:2(?:5(?:6(?::[0-9a-f]{0,3})?)?)?)?)?)?)$/i.test(search ?? "");

const criteria = fc.record(
  {
    eventTypes: fc.uniqueArray(fc.constantFrom("one", "two", "three", "none"), { minLength: 1 }),
    tags: fc.array(fc.constantFrom("NEWS", "news", "news ", " News", "É", "a,b", "none"), {
      minLength: 1,
      maxLength: 2,
    }),
    orTag: fc.constantFrom("a,b", "A,B", "none"),
    fingerprint: stored,
    document: stored,
    search: fc
      .oneof(
        stored,
        fc.tuple(stored, fc.nat(40)).map(([text, cut]) => text.slice(0, cut + 1)),
        hex(1),
        hex(2),
        fc.constantFrom("s", "sha256:a", "SHA256:AB12", "dra", "12ab"),
      )
      .filter((text) => text.length > 0),
  },
  { requiredKeys: [] },
);

test("a search for what is no hex finds no hash, however that begins", async () => {
  const { log } = await openTestLog();
  const zeros = "0".repeat(64);
  await log.append([
    { event_type: "note", payload: { document_hash: zeros } },
    { event_type: "note", payload: { document_hash: `sha256:${zeros}` } },
  ]);
  const found = (search: string) => log.match({ search }, 0, 10).indexes;
  // Long enough that no hash of an entry has the same beginning.
  const prefix = zeros.slice(0, 20);
  expect([found(prefix), found(`sha256:${prefix}`), found(zeros)]).toEqual([[0], [1], [0, 1]]);
  for (const term of ["g", "zz", "0g", "g0", "sha256:g000", "sha256:000g", "sha256:zzzz"])
    expect(found(term), term).toEqual([]);
});

test("one tag will do instead of several, and an entry with both is found once", async () => {
  const { log } = await openTestLog();
  const tagged = [["a", "b"], ["a,b"], ["b", "A,B", "a"], ["a"], [], ["c", "A,B"]];
  await log.append(tagged.map((tags, i) => ({ event_type: i < 3 ? "one" : "two", payload: { tags } })));
  const found = (more: Partial<Criteria>) => log.match({ tags: ["a", "b"], orTag: "a,b", ...more }, 0, 10);
  expect(found({})).toEqual({ total: 4, indexes: [0, 1, 2, 5] });
  expect(found({ eventTypes: ["two"] })).toEqual({ total: 1, indexes: [5] });
  expect(found({ orTag: "none" })).toEqual({ total: 2, indexes: [0, 2] });
  expect(found({ tags: ["none"] })).toEqual({ total: 3, indexes: [1, 2, 5] });
});

test("every query finds the same entries as the naive filter, page by page", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { minLength: 1, maxLength: 60 }),
      fc.array(criteria, { minLength: 30, maxLength: 30 }),
      async (events, queries) => {
        const { log } = await openTestLog();
        await log.append(events as unknown as readonly EventInput[]);
        const entries = [...log.entries()];
        // The beginning of a digest finds its entry.
        queries.push({ search: entries[0]!.entry_hash.slice(0, 6) }, { search: entries[0]!.entry_hash.toUpperCase() });
        for (const query of queries) {
          if (isTooWide(query.search)) {
            expect(() => log.find(query as Criteria, 0, 7)).toThrow(/at least 4 digits/);
            continue;
          }
          const expected = entries.filter((entry) => matches(entry, query as Criteria)).map((entry) => entry.id);
          const found: number[] = [];
          for (let offset = 0; ; offset += 7) {
            const { entries: page, total } = log.find(query as Criteria, offset, 7);
            expect(total).toBe(expected.length);
            found.push(...page.map((json) => JSON.parse(json.toString()).id));
            if (page.length < 7) break;
          }
          expect(found).toEqual(expected);
        }
        await log.close();
      },
    ),
    { numRuns: 60 },
  );
});

test("dates narrow a query to a stretch of the log", async () => {
  let now = 1_700_000_000_000_000;
  const { log } = await openTestLog({ clock: () => now });
  const times: string[] = [];
  for (let n = 0; n < 30; n++) {
    times.push((await log.append({ event_type: n % 2 ? "odd" : "even", payload: {} })).timestamp);
    now += 1_000_000;
  }
  const at = (n: number) => parseTimestamp(times[n]!);
  expect(log.between(at(0), at(17))).toEqual([{ from: 0, to: 17 }]);
  expect(log.between(at(17), Number.POSITIVE_INFINITY)).toEqual([{ from: 17, to: 30 }]);
  expect(log.between(at(29) + 1, Number.POSITIVE_INFINITY)).toEqual([]);
  const { total, entries } = log.find({ eventTypes: ["odd"], within: log.between(at(10), at(20)) }, 0, 50);
  expect(total).toBe(5);
  expect(JSON.parse(entries[0]!.toString()).id).toBe(12);
});

/** The result of `work`, and the number of its pauses. `between` runs in each pause. */
async function paused<T>(work: Generator<void, T, void>, between: () => Promise<unknown> = async () => {}) {
  for (let pauses = 0; ; pauses++) {
    const { done, value } = work.next();
    if (done) return { value, pauses };
    await between();
  }
}

test("what has to be walked is walked in slices, and what is appended meanwhile changes nothing", async () => {
  const { log } = await openTestLog();
  const event = (i: number) => ({
    event_type: "note",
    payload: { document_hash: `sha256:abcd${i.toString(16).padStart(60, "0")}`, tags: ["a", i % 2 ? "odd" : "even"] },
  });
  const same = { event_type: "note", payload: { document_hash: `sha256:${"e".repeat(64)}`, tags: ["a", "odd"] } };
  const many = 9_000;
  Object.assign(TURN, { dense: 4_000, blocks: 10 });
  const events = [...Array.from({ length: many }, (_, i) => event(i)), ...Array.from({ length: many }, () => same)];
  for (let from = 0; from < events.length; from += 4_000) await log.append(events.slice(from, from + 4_000));
  let more = many;
  const between = () => log.append([event(more++), same]);
  const queries: [Criteria, total: number, pauses: number][] = [
    // Its postings are gathered at once.
    [{ search: "sha256:abcd" }, many, 0],
    [{ search: "sha256:abcd", tags: ["a"] }, many, 2],
    // Read by rank.
    [{ search: `sha256:${"e".repeat(64)}` }, many, 0],
    [{ search: "sha256:eeee", tags: ["a", "odd"] }, many, 2],
    [{ tags: ["a", "odd"] }, many / 2 + many, 2],
    [{ eventTypes: ["note"], tags: ["a"] }, 2 * many, 2],
  ];
  for (const [criteria, total, least] of queries) {
    const grown = log.size - events.length;
    const expected = log.match(criteria, total - 3, 10);
    // Entries that were appended before the query also count.
    expect(expected.total).toBeGreaterThanOrEqual(total);
    expect(expected.total).toBeLessThanOrEqual(total + grown);
    const { value, pauses } = await paused(log.matching(criteria, total - 3, 10), between);
    expect(pauses, JSON.stringify(criteria)).toBeGreaterThanOrEqual(least);
    expect(value).toEqual(expected);
  }
  // A page of one list is read directly and needs no pause.
  expect((await paused(log.matching({ tags: ["a"] }, 0, 10))).pauses).toBe(0);
});
