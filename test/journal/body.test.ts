/** A record whose rows are kept apart from it. */
import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { columnsOf } from "#cairnlog/engine/journal/postgres/statements.js";
import { bodyWithout, type JournalRecord, recordHash, recordOf } from "#cairnlog/engine/journal/record.js";
import { readLines } from "#cairnlog/engine/journal/rows.js";
import { NO_HASH } from "#cairnlog/engine/store/changeset.js";
import { packBatch } from "#cairnlog/engine/store/schema/batch.js";

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

/** The same record in format 1. The head of that format holds the SHA-256 of the batch. */
function inFormat1(body: Buffer): Buffer {
  const former = Buffer.from(body);
  former[0] = 1;
  former.set(hash("sha256", body.subarray(151), "buffer"), 51);
  former.set(hash("sha256", former.subarray(0, 115), "buffer"), 115);
  return former;
}

test.each([
  ["it", (body: Buffer) => body],
  ["one of format 1", inFormat1],
])("%s loses payloads, one after the other, and its hash stays; every byte of what is left counts", (_, made) => {
  const hashes = `"previous_hash":"00","entry_hash":"01","entry_hashes":[]}`;
  const entryOf = (id: number, payload: string) => Buffer.from(`{"id":${id},"payload":${payload},${hashes}`);
  // Names of members in a payload mislead nobody.
  const secret = '{"payload":"secret","previous_hash":"0"}';
  const entries = [entryOf(5, secret), entryOf(6, '{"shown":1}'), entryOf(7, secret), Buffer.from("no entry")];
  const body = made(columnsOf({ ...record, batch: packBatch(entries, Buffer.alloc(128, 1), null) }, 4).body);
  const before = recordHash(body);
  expect(recordOf(body, rows, true).hash).toEqual(before);
  const withheld = (id: number) =>
    entryOf(id, id === 5 ? 'null,"withheld_by":9' : '{"pseudonym":"withheld"},"withheld_by":9');
  const one = bodyWithout(body, new Map([[4, withheld(5)]]))!;
  const both = bodyWithout(one, new Map([4, 6].map((leaf) => [leaf, withheld(leaf + 1)])))!;
  for (const [shorter, found, shown] of [
    [one, 1, [withheld(5), ...entries.slice(1)]],
    [both, 0, [withheld(5), entries[1]!, withheld(7), entries[3]!]],
  ] as const) {
    const read = recordOf(shorter, rows, true);
    expect(read.hash).toEqual(before);
    expect(read.record.batch).toEqual(packBatch(shown, Buffer.alloc(128, 1), null));
    expect(shorter.toString("latin1").split("secret")).toHaveLength(found + 1);
  }
  expect(bodyWithout(both, new Map([[4, withheld(5)]]))).toBeNull();
  expect(bodyWithout(both, new Map([[8, withheld(9)]]))).toBeNull();
  const text = both.toString("latin1");
  // By which entry a payload is withheld is not in what was hashed, and neither is a name that stands in its place.
  const nameless = '{"pseudonym":"withheld"}';
  const isFree = (at: number) =>
    text.slice(0, at + 1).endsWith('"withheld_by":9') ||
    (at > text.indexOf(nameless) && at < text.indexOf(nameless) + nameless.length - 1);
  for (let at = 0; at < both.length; at++) {
    const changed = Buffer.from(both);
    changed[at]! ^= 1;
    if (!isFree(at)) expect(() => recordOf(changed, rows, true), `byte ${at}`).toThrow(/damaged/);
  }
  for (const less of [1, 32, 36]) expect(() => recordOf(both.subarray(0, -less), rows, true)).toThrow(/damaged/);
});
