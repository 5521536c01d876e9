/** The comparison of two sets of rows, tiles or postings: every difference once, in the order of the keys. */
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  postingDifferences,
  rowDifferences,
  stateDifferences,
  tileDifferences,
} from "#cairnlog/engine/log/check/differences.js";
import type { RowChange, TileChange } from "#cairnlog/engine/store/changeset.js";
import { Postings } from "#cairnlog/engine/store/postings/postings.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, temporaryFolder } from "../harness.js";

const seam = (key: number, before = 0): RowChange => ({
  table: "seams",
  key,
  row: { leaf_index: key, starts_at: 1, before },
});
const tile = (level: number, index: number, byte = 1): TileChange => ({
  treeVersion: 2,
  level,
  index,
  hashes: Buffer.alloc(32, byte),
});

async function storeWith(rows: readonly RowChange[], tiles: readonly TileChange[]): Promise<Store> {
  const store = openStore({ path: temporaryFolder(), mapSize: MAP_SIZE });
  const after = store.position().sequence;
  await store.commit({ after, position: null, batches: [], rows, tiles });
  return store;
}

let stored: Store;
let expected: Store;
beforeAll(async () => {
  stored = await storeWith(
    [1, 3, 4, 9, 10].map((key) => seam(key, key === 4 ? 7 : 0)),
    [tile(0, 1), tile(0, 2, 7), tile(1, 0)],
  );
  expected = await storeWith(
    [2, 3, 4, 6, 7, 9, 11, 12].map((key) => seam(key)),
    [tile(0, 0), tile(0, 2), tile(1, 0), tile(1, 1)],
  );
});
afterAll(async () => {
  await stored.close();
  await expected.close();
});

const ROWS = [
  { key: 1, kind: "surplus" },
  { key: 2, kind: "missing" },
  { key: 4, kind: "altered" },
  { key: 6, kind: "missing" },
  { key: 7, kind: "missing" },
  { key: 10, kind: "surplus" },
  { key: 11, kind: "missing" },
  { key: 12, kind: "missing" },
];

test("rows that are missing, surplus or altered are found, from a key on or all of them", () => {
  expect([...rowDifferences(stored, expected, "seams")]).toEqual(ROWS);
  expect([...rowDifferences(stored, expected, "seams", 4)]).toEqual(ROWS.slice(2));
  expect([...rowDifferences(stored, expected, "seams", 5)]).toEqual(ROWS.slice(3));
  expect([...rowDifferences(stored, expected, "keys")]).toEqual([]);
  expect([...rowDifferences(stored, stored, "seams")]).toEqual([]);
});

test("a row that cannot be read is found among the others", () => {
  const broken: Pick<Store, "get" | "keys"> = {
    keys: (table, start) => stored.keys(table, start),
    get(table, key) {
      if (key === 3) throw new Error("bytes that are no row");
      return stored.get(table, key);
    },
  };
  const [first, second, ...others] = ROWS;
  expect([...rowDifferences(broken, expected, "seams")]).toEqual([
    first,
    second,
    { key: 3, kind: "unreadable" },
    ...others,
  ]);
});

test("tiles are compared byte for byte", () => {
  const found = [
    { key: [2, 0, 0], kind: "missing" },
    { key: [2, 0, 1], kind: "surplus" },
    { key: [2, 0, 2], kind: "altered" },
    { key: [2, 1, 1], kind: "missing" },
  ];
  expect([...tileDifferences(stored, expected)]).toEqual(found);
  expect([...tileDifferences(stored, expected, [2, 0, 2])]).toEqual(found.slice(2));
});

test("each difference of the derived tables is a sentence with its table and key", () => {
  expect([...stateDifferences(stored, expected)].slice(0, 3)).toEqual([
    "seams 1 is on disk, but the entries do not make it",
    "seams 2 is missing on disk",
    "seams 4 differs from the one that the entries make",
  ]);
});

test("terms whose postings differ are named, and postings that no entry makes are counted", () => {
  const [note, tag] = [hashedTerm(POSTING.eventType, "note"), hashedTerm(POSTING.tag, "a tag")];
  const terms = (...postings: [string, number][]) => {
    const table = new TermTable();
    for (const [term, index] of postings) table.add(term, index);
    return table;
  };
  const postings = new Postings(stored.postings);
  postings.add(3, terms([note, 0], [note, 2], [tag, 1]));
  expect([...postingDifferences(postings, terms([tag, 1], [note, 0], [note, 2]))]).toEqual([]);
  expect([...postingDifferences(postings, terms([note, 0], [note, 1], [tag, 1]))]).toEqual([
    `postings of kind ${POSTING.eventType}: entries 0,2 instead of 0,1`,
  ]);
  expect([...postingDifferences(postings, terms([note, 0], [note, 2]))]).toEqual([
    "3 postings are held, but the entries make 2",
  ]);
});
