/** Records of the journal: each has one form, damage is refused, and the chain shows missing records. */
import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkNext } from "#cairnlog/engine/journal/ledger.js";
import { bodyOf, encodeRecord, type JournalRecord, recordHash } from "#cairnlog/engine/journal/record.js";
import { type JournalPosition, ORIGIN } from "#cairnlog/engine/store/changeset.js";
import { decodeRecord } from "./fakejournal.js";

const text = fc.string({ unit: "grapheme", maxLength: 8 });
const bytes = (length: number) =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((some) => Buffer.from(some));
const number = fc.nat({ max: 2 ** 40 });
const key = fc.oneof(text, number, fc.tuple(text, number));
const member = fc.oneof(
  text,
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  fc.boolean(),
  fc.constant(null),
  fc.array(text, { maxLength: 3 }),
  fc.uint8Array({ maxLength: 8 }).map((some) => Buffer.from(some)),
);
const row = fc.option(
  fc.dictionary(text, member, { maxKeys: 5 }).map((members) => ({ ...members })),
  {
    nil: undefined,
  },
);
const change = fc.record({ table: fc.constantFrom("meta", "users", "outbox", "anchors"), key, row });
const record = fc.record({
  sequence: number.map((n) => n + 1),
  previous: bytes(32),
  epoch: number,
  firstIndex: number,
  batch: fc.option(fc.uint8Array({ minLength: 1, maxLength: 40 }).map((some) => Buffer.from(some))),
  rows: fc.uniqueArray(change, {
    maxLength: 5,
    selector: (one) => JSON.stringify([one.table, one.key]),
  }),
}) as fc.Arbitrary<JournalRecord>;

/** Numbers, hash of the record before, digests of batch and rows. */
const HEAD_BYTES = 115;
const DAMAGED = expect.objectContaining({ name: "CairnlogError", code: "corrupt-log" });

const example: JournalRecord = {
  sequence: 7,
  previous: Buffer.alloc(32, 1),
  epoch: 2,
  firstIndex: 300,
  batch: Buffer.from("a batch"),
  rows: [
    { table: "users", key: "u", row: { id: "u", email: "a@example.org" } },
    { table: "anchors", key: 3, row: { proof: Buffer.from([0, 255]) } },
    { table: "outbox", key: [1, 2], row: undefined },
  ],
};

/** A value whose objects have their members in reverse order. */
const reversed = (value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
    ? Object.fromEntries(Object.entries(value).reverse())
    : value;

describe("a record", () => {
  test("comes out of its bytes as it went in, with its rows in key order", () => {
    fc.assert(
      fc.property(record, (one) => {
        const again = decodeRecord(encodeRecord(one));
        expect({ ...again, rows: new Set(again.rows) }).toEqual({ ...one, rows: new Set(one.rows) });
        expect(encodeRecord(again)).toEqual(encodeRecord(one));
      }),
    );
  });

  test("has one form, for any order of rows and members", () => {
    fc.assert(
      fc.property(record, (one) => {
        const rows = [...one.rows].reverse().map((each) => ({ ...each, row: reversed(each.row) }));
        expect(encodeRecord({ ...one, rows })).toEqual(encodeRecord(one));
      }),
    );
  });

  test("is refused when any bit of it is flipped, and when it is cut short or longer", () => {
    const whole = encodeRecord(example);
    const sound = { ...example, rows: [example.rows[1], example.rows[2], example.rows[0]] };
    expect(decodeRecord(whole)).toEqual(sound);
    // In the text of the rows a bit may say nothing, as at the end of Base64.
    const unlessRefused = (bytes: Buffer) => {
      try {
        return decodeRecord(bytes);
      } catch (error) {
        expect(error).toEqual(DAMAGED);
        return sound;
      }
    };
    for (let bit = 0; bit < 8 * whole.length; bit++) {
      const flipped = Buffer.from(whole);
      flipped[bit >>> 3]! ^= 1 << (bit & 7);
      if (bit < 8 * bodyOf(whole).length) expect(() => decodeRecord(flipped)).toThrow(DAMAGED);
      else expect(unlessRefused(flipped)).toEqual(sound);
    }
    for (let length = 0; length < whole.length; length++)
      expect(() => decodeRecord(whole.subarray(0, length))).toThrow(DAMAGED);
    expect(() => decodeRecord(Buffer.concat([whole, Buffer.from("\n")]))).toThrow(DAMAGED);
  });

  test("refuses rows that are derived from entries, and a second form of a row", () => {
    const planted = { table: "keys", key: "k", row: {} } as unknown as JournalRecord["rows"][number];
    expect(() => decodeRecord(encodeRecord({ ...example, rows: [planted] }))).toThrow(/Rows of the table "keys"/);
    const twice = { table: "users", key: "u", row: { b: { base64: "AA" } } } as const;
    expect(() => decodeRecord(encodeRecord({ ...example, rows: [twice] }))).toThrow(/hashes do not match its bytes/);
  });

  test("has a hash that covers the digest of its rows, so that the chain holds without them", () => {
    const whole = encodeRecord(example);
    for (const changed of [
      { ...example, sequence: 8 },
      { ...example, previous: Buffer.alloc(32, 2) },
      { ...example, epoch: 3 },
      { ...example, firstIndex: 301 },
      { ...example, batch: null },
      { ...example, batch: Buffer.from("another") },
      { ...example, rows: [] },
      { ...example, rows: example.rows.slice(1) },
    ])
      expect(recordHash(encodeRecord(changed))).not.toEqual(recordHash(whole));
    const head = whole.subarray(0, HEAD_BYTES);
    expect(Buffer.from(recordHash(whole))).toEqual(createHash("sha256").update(head).digest());
  });
});

describe("the chain", () => {
  const chain = (records: readonly JournalRecord[]) => {
    let position: JournalPosition = ORIGIN;
    for (const one of records) {
      checkNext(position, one);
      position = { sequence: one.sequence, epoch: one.epoch, hash: recordHash(encodeRecord(one)) };
    }
    return position;
  };
  const linked = fc.array(fc.tuple(record, fc.nat(2)), { minLength: 2, maxLength: 6 }).map((drafts) => {
    const records: JournalRecord[] = [];
    let position: JournalPosition = ORIGIN;
    for (const [draft, raised] of drafts) {
      const one = {
        ...draft,
        sequence: position.sequence + 1,
        previous: position.hash,
        epoch: position.epoch + raised,
      };
      records.push(one);
      position = { sequence: one.sequence, epoch: one.epoch, hash: recordHash(encodeRecord(one)) };
    }
    return records;
  });

  test("accepts records in order, and refuses missing, repeated and different ones", () => {
    fc.assert(
      fc.property(linked, fc.nat(), (records, at) => {
        expect(chain(records).sequence).toBe(records.length);
        const i = at % records.length;
        const without = records.filter((_, n) => n !== i);
        if (i < records.length - 1) expect(() => chain(without)).toThrow(`record ${i + 2} instead of ${i + 1}.`);
        const twice = [...records.slice(0, i + 1), ...records.slice(i)];
        expect(() => chain(twice)).toThrow(DAMAGED);
        const other = records.map((one, n) => (n === i ? { ...one, firstIndex: one.firstIndex + 1 } : one));
        if (i < records.length - 1) expect(() => chain(other)).toThrow(/does not follow the record before it/);
      }),
    );
  });

  test("refuses a record of an epoch that has ended", () => {
    const first = { ...example, sequence: 1, previous: ORIGIN.hash, epoch: 2 };
    const second = { ...example, sequence: 2, previous: recordHash(encodeRecord(first)), epoch: 1 };
    expect(() => chain([first, second])).toThrow(/epoch 2 has begun/);
  });
});
