/** Runs of postings are compared with the entries: each fault is named once, in its own words, and no other is. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { RunCheck } from "#cairnlog/engine/log/check/run-check.js";
import type { PostingTables } from "#cairnlog/engine/store/postings/contract.js";
import { Postings } from "#cairnlog/engine/store/postings/postings.js";
import { BLOCK_RECORDS, MAPS, RECORD_BYTES } from "#cairnlog/engine/store/postings/run-format.js";
import type { StoredRun } from "#cairnlog/engine/store/postings/runs.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, temporaryFolder } from "../harness.js";

/** Run 1 has the entries below `BORDER` and two blocks; run 2 has the others and one block. */
const [BORDER, SIZE] = [1000, 1100];
/** Postings of run 1: each entry has its type, and one in a hundred is an attestation. */
const COUNT = BORDER + BORDER / 100;
const NOTE = hashedTerm(POSTING.eventType, "note");

function addTerms(terms: TermTable, from: number, to: number): TermTable {
  for (let index = from; index < to; index++) {
    terms.add(NOTE, index);
    if (index % 100 === 0) terms.add(hashedTerm(POSTING.attestationId, `${index}`), index);
  }
  return terms;
}

let store: Store;
beforeAll(async () => {
  store = openStore({ path: temporaryFolder(), mapSize: MAP_SIZE });
  const postings = new Postings(store.postings);
  for (const [from, to] of [
    [0, BORDER],
    [BORDER, SIZE],
  ] as const) {
    postings.add(to, addTerms(new TermTable(), from, to));
    await postings.fileAll();
  }
  await postings.close();
});
afterAll(() => store.close());

type Change = (sound: PostingTables) => Partial<PostingTables>;
const all = () => addTerms(new TermTable(), 0, SIZE);

/** The sentences about the runs, some of which read otherwise than they were written. */
function said(change: Change = () => ({}), terms = all(), size = SIZE): string[] {
  const sentences: string[] = [];
  const postings = { ...store.postings, ...change(store.postings) };
  const check = new RunCheck(postings, "postings", size, (sentence) => sentences.push(sentence));
  check.check(terms);
  check.finish();
  return sentences;
}

/** Run number `id` with other members. */
const withRun =
  (id: number, change: (run: StoredRun) => Partial<StoredRun>): Change =>
  ({ run }) => ({ run: (wanted) => (wanted === id ? { ...run(id), ...change(run(id)) } : run(wanted)) });

/** A block with other bytes; undefined: it is missing. */
const withBlock =
  (id: number, number: number, change: (bytes: Buffer) => Buffer | undefined): Change =>
  ({ block }) => ({
    block: (run, n) => {
      const found = block(run, n);
      return run === id && n === number && found ? change(Buffer.from(found)) : found;
    },
  });

const changed = (bytes: Buffer, at: number, value: number): Buffer => {
  bytes[at] = value;
  return bytes;
};

test("nothing is said of runs that hold the postings of all entries, in whatever order they are read", () => {
  expect(store.postings.run(1)).toMatchObject({ from: 0, to: BORDER, count: COUNT });
  expect(said()).toEqual([]);
  expect(said(() => ({ runIds: () => [2, 1] }))).toEqual([]);
  // Entries beyond the last run have their postings in memory.
  expect(said(undefined, addTerms(all(), SIZE, SIZE + 5), SIZE + 5)).toEqual([]);
});

const FAULTS: [string, Change, string[]][] = [
  [
    "a lost run",
    () => ({ runIds: () => [2] }),
    [`run 2 of postings begins at leaf ${BORDER}, where the one before ends at 0.`],
  ],
  [
    "a row that cannot be read",
    ({ run }) => ({
      run: (id) => {
        if (id === 2) throw new Error("no row");
        return run(id);
      },
    }),
    ["the row of run 2 of postings cannot be read."],
  ],
  [
    "a run that overlaps the one before",
    withRun(2, ({ from }) => ({ from: from - 1 })),
    [`run 2 of postings begins at leaf ${BORDER - 1}, where the one before ends at ${BORDER}.`],
  ],
  [
    "a run that was made twice, and the next one is not blamed",
    ({ run }) => ({ runIds: () => [1, 3, 2], run: (id) => (id === 3 ? { ...run(1), id, to: 500 } : run(id)) }),
    [`run 3 of postings begins at leaf 0, where the one before ends at ${BORDER}.`],
  ],
  [
    "a run that overlaps the one before, and one that holds more than begins behind it",
    ({ run }) => ({
      runIds: () => [1, 3, 2],
      run: (id) => {
        if (id === 3) return { ...run(1), id, from: BORDER - 1, to: BORDER + 50 };
        return id === 2 ? { ...run(id), from: BORDER + 50 } : run(id);
      },
    }),
    [
      `run 3 of postings begins at leaf ${BORDER - 1}, where the one before ends at ${BORDER}.`,
      "run 2 of postings holds 101, but its entries make 50.",
    ],
  ],
  [
    "a run that goes beyond the log",
    withRun(2, ({ to }) => ({ to: to + 1 })),
    [`run 2 of postings covers leaves ${BORDER} to ${SIZE + 1}, and the log has ${SIZE}.`],
  ],
  [
    "a run of no entries",
    withRun(2, ({ from }) => ({ to: from })),
    [`run 2 of postings covers leaves ${BORDER} to ${BORDER}, and the log has ${SIZE}.`],
  ],
  ["a lost block", withBlock(1, 1, () => undefined), ["block 1 of run 1 of postings is missing on disk."]],
  [
    "a block that is cut short, and a last one that is too long",
    (sound) => {
      const first = withBlock(1, 0, (bytes) => bytes.subarray(RECORD_BYTES))(sound);
      return withBlock(1, 1, (bytes) => Buffer.concat([bytes, bytes.subarray(0, 1)]))({ ...sound, ...first });
    },
    [
      `block 0 of run 1 of postings has ${(BLOCK_RECORDS - 1) * RECORD_BYTES} bytes instead of ${BLOCK_RECORDS * RECORD_BYTES}.`,
      `block 1 of run 1 of postings has ${(COUNT - BLOCK_RECORDS) * RECORD_BYTES + 1} bytes instead of ${(COUNT - BLOCK_RECORDS) * RECORD_BYTES}.`,
    ],
  ],
  [
    // A little above the first record of its block: all postings are still found.
    "a fence that is not where its block begins",
    withRun(1, ({ fences }) => ({ fences: fences.with(fences.length - 1, fences.at(-1)! + 0.25) })),
    ["the fences of run 1 of postings are not the first records of its blocks."],
  ],
  [
    "a lost fence",
    withRun(1, ({ fences }) => ({ fences: fences.slice(0, fences.length / 2) })),
    ["the fences of run 1 of postings are not the first records of its blocks."],
  ],
  [
    "a posting of another entry",
    withBlock(1, 0, (bytes) => changed(bytes, 5 * RECORD_BYTES + RECORD_BYTES - 1, 4)),
    ["run 1 of postings lacks the posting of entry 6 of the kind eventType."],
  ],
  [
    "a Bloom filter that forgot; it has only some kinds",
    withRun(1, ({ bloom }) => ({ bloom: new Uint8Array(bloom.length) })),
    Array.from(
      { length: 10 },
      (_, i) => `the Bloom filter of run 1 denies the posting of entry ${100 * i + 1} of the kind attestationId.`,
    ),
  ],
];
test.each(FAULTS)("%s is named", (_, change, sentences) => {
  expect(said(change)).toEqual(sentences);
});

test.each([0, 255])("a last record whose term now ends in byte %i is not taken for the one before", (value) => {
  const LAST = (COUNT - BLOCK_RECORDS - 1) * RECORD_BYTES;
  const records = Buffer.from(store.postings.block(1, 1)!);
  const index = records.readUIntBE(LAST + RECORD_BYTES - 6, 6);
  expect(records[LAST + 16]).not.toBe(value);
  expect(said(withBlock(1, 1, (bytes) => changed(bytes, LAST + 16, value)))).toEqual([
    `run 1 of postings lacks the posting of entry ${index + 1} of the kind attestationId.`,
  ]);
});

test("a run with more or fewer postings than its entries make is named, with both numbers", () => {
  const fewer = addTerms(addTerms(new TermTable(), 0, 7), 8, SIZE);
  expect(said(undefined, fewer)).toEqual([`run 1 of postings holds ${COUNT}, but its entries make ${COUNT - 1}.`]);
  const more = all();
  more.add(String.fromCharCode(99).padEnd(17, "x"), BORDER);
  expect(said(undefined, more)).toEqual([
    `run 2 of postings lacks the posting of entry ${BORDER + 1} of the kind 99.`,
    "run 2 of postings holds 101, but its entries make 102.",
  ]);
});

test("a bitmap that does not say what its blocks do, or is lost, or is looked for in vain", async () => {
  const folder = openStore({ path: temporaryFolder(), mapSize: MAP_SIZE });
  const postings = new Postings(folder.postings);
  const size = 4_000;
  const terms = addTerms(new TermTable(), 0, size);
  postings.add(size, terms);
  await postings.fileAll();
  const found = (change: (map: Buffer) => Buffer | undefined, stored: Partial<StoredRun> = {}) => {
    const sentences: string[] = [];
    const tables = {
      ...folder.postings,
      run: (id: number) => ({ ...folder.postings.run(id), ...stored }),
      block(run: number, number: number) {
        const read = folder.postings.block(run, number);
        return read && number >= MAPS ? change(Buffer.from(read)) : read;
      },
    };
    const check = new RunCheck(tables, "postings", size, (sentence) => sentences.push(sentence));
    check.check(terms);
    check.finish();
    return sentences;
  };
  const fault = ["a bitmap of run 1 of postings does not say what its blocks do."];
  expect(found((map) => map)).toEqual([]);
  expect(found((map) => changed(map, 9, map[9]! ^ 4))).toEqual(fault);
  expect(found(() => undefined)).toEqual(fault);
  // A run of an older version has none.
  expect(found(() => undefined, { mapped: false })).toEqual([]);
  await folder.close();
});
