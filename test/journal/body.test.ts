/** A record whose rows are kept apart from it. */
import { expect, test } from "vitest";
import { columnsOf } from "#cairnlog/engine/journal/postgres/columns.js";
import { type JournalRecord, recordOf } from "#cairnlog/engine/journal/record.js";
import { readLines } from "#cairnlog/engine/journal/rows.js";
import { packBatch } from "#cairnlog/engine/store/schema/batch.js";
import { NO_HASH } from "#cairnlog/engine/store/schema/position.js";

const entry = Buffer.from('{"n":1}');
const record: JournalRecord = {
  sequence: 7,
  previous: Buffer.alloc(32, 3),
  epoch: 2,
  firstIndex: 4,
  batch: packBatch([entry], Buffer.alloc(32, 1), null),
  rows: [
    { table: "signedHeads", key: "log", row: { timestamp: "2026-01-01T00:00:00.000000+00:00" } },
    { table: "users", key: "u1", row: { display_name: "Ada" } },
    { table: "passwords", key: "sha256:00", row: undefined },
  ],
};
const columns = columnsOf(record, 1);
const rows = [columns.publicRows, columns.privateRows].flatMap((text) => readLines(text ?? ""));

test("what is private is not among its public parts", () => {
  expect(columns.publicRows).toContain("signedHeads");
  expect(`${columns.publicRows}${columns.body.toString("latin1")}`).not.toContain("Ada");
  expect(columns.changes).toEqual({
    tables: ["users", "passwords"],
    keys: ['"u1"', '"sha256:00"'],
    lines: ['["users","u1",{"display_name":"Ada"}]', null],
  });
  expect([columns.size, columns.sequence]).toEqual([5, 7]);
});

test("it is put together again, in any order of its rows", () => {
  const whole = recordOf(columns.body, [...rows].reverse(), true);
  expect(Buffer.from(whole.hash)).toEqual(columns.hash);
  expect(whole.record).toMatchObject({ sequence: 7, epoch: 2, firstIndex: 4 });
  expect(whole.record.rows).toHaveLength(3);
  expect(whole.record.batch).toEqual(record.batch);
});

test("its hash covers its rows, which may be missing where they were removed", () => {
  expect(() => recordOf(columns.body, rows.slice(1), true)).toThrow(expect.objectContaining({ code: "corrupt-log" }));
  const bare = recordOf(columns.body, rows.slice(0, 1), false);
  expect(Buffer.from(bare.hash)).toEqual(columns.hash);
  expect(bare.record.rows).toEqual(rows.slice(0, 1));
});

test("every byte of its body counts, whether rows are missing or not", () => {
  for (let at = 0; at < columns.body.length; at++) {
    const changed = Buffer.from(columns.body);
    changed[at]! ^= 1;
    for (const areComplete of [true, false])
      expect(() => recordOf(changed, areComplete ? rows : [], areComplete), `byte ${at}`).toThrow(/damaged/);
  }
  expect(() => recordOf(columns.body.subarray(0, 50), [], false)).toThrow(/cut short/);
});

test("a record without batch and rows", () => {
  const bare = columnsOf({ ...record, previous: NO_HASH, batch: null, rows: [] }, 0);
  expect([bare.publicRows, bare.privateRows]).toEqual([null, null]);
  expect(recordOf(bare.body, [], true).record).toMatchObject({ batch: null, rows: [] });
});
