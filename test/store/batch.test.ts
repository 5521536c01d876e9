import fc from "fast-check";
import { expect, test } from "vitest";
import { Batch, joinEntries, joinedEntry, packBatch, packJoined } from "#cairnlog/engine/store/schema/batch.js";
import { headsOf } from "../log/tamper.js";
import { anyCharacter, jsonValues } from "../texts.js";

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const item = fc.record({
  json: jsonValues().map((value) => Buffer.from(JSON.stringify(value))),
  digest: bytes(32),
  root: bytes(32),
  timestamp: fc.maxSafeNat(),
});

test("entries are joined that are too long to be one text", () => {
  const texts = Object.assign(["é", "a", "€"], {
    join() {
      throw new RangeError("Invalid string length");
    },
  });
  const entries = joinEntries(texts);
  expect(texts.map((_, i) => joinedEntry(entries, i).toString())).toEqual([...texts]);
});

test("packed values can be unpacked", () => {
  fc.assert(
    fc.property(
      fc.array(item, { minLength: 1, maxLength: 20 }),
      fc.constantFrom(64, 256),
      fc.option(bytes(32)),
      fc.nat(),
      (items, signatureLength, keyId, firstIndex) => {
        const heads = keyId && {
          treeVersion: 2 as const,
          keyId,
          heads: items.map(({ root, timestamp }, i) => ({
            root,
            timestamp,
            signature: new Uint8Array(signatureLength).fill(i),
          })),
        };
        const row = packBatch(
          items.map(({ json }) => json),
          Buffer.concat(items.map(({ digest }) => digest)),
          heads,
        );
        const batch = new Batch(firstIndex, row);
        expect(batch.count).toBe(items.length);
        expect(Buffer.compare(batch.digests, Buffer.concat(items.map(({ digest }) => digest)))).toBe(0);
        expect(batch.headInfo === null).toBe(keyId === null);
        items.forEach(({ json, root, timestamp }, i) => {
          expect(batch.entry(i).equals(json)).toBe(true);
          const head = batch.head(i);
          if (!keyId) expect(head).toBeNull();
          else {
            expect(head!.timestamp).toBe(timestamp);
            expect(Buffer.compare(head!.root, root)).toBe(0);
            expect([...head!.signature]).toEqual(new Array(signatureLength).fill(i));
          }
        });
      },
    ),
  );
});

test("a batch that was appended has the same bytes as the same batch from elsewhere", () => {
  const text = fc.oneof(fc.string(), fc.string({ unit: anyCharacter })).map((value) => JSON.stringify(value));
  fc.assert(
    fc.property(
      fc.array(fc.record({ text, digest: bytes(32), root: bytes(32) }), { minLength: 1, maxLength: 20 }),
      fc.constantFrom(48, 64, 256),
      bytes(32),
      fc.maxSafeNat(),
      (items, signatureLength, keyId, timestamp) => {
        const digests = Buffer.concat(items.map(({ digest }) => digest));
        const signatures = Buffer.concat(items.map((_, i) => Buffer.alloc(signatureLength, i + 1)));
        const roots = Buffer.concat(items.map(({ root }) => root));
        const entries = joinEntries(items.map((item) => item.text));
        const joined = packJoined(entries, digests, { treeVersion: 2, keyId, roots, timestamp, signatures });
        const heads = items.map(({ root }, i) => ({
          root,
          timestamp,
          signature: Buffer.alloc(signatureLength, i + 1),
        }));
        const single = packBatch(
          items.map((item) => Buffer.from(item.text, "utf8")),
          digests,
          { treeVersion: 2, keyId, heads },
        );
        expect(joined.equals(single)).toBe(true);
        expect(items.map((_, i) => joinedEntry(entries, i).toString("utf8"))).toEqual(items.map((item) => item.text));
      },
    ),
  );
});

test("a row that is cut short or of another format is refused", () => {
  const row = packBatch([Buffer.from("{}"), Buffer.from("[]")], Buffer.alloc(64), null);
  for (let length = 0; length < row.length; length++)
    expect(() => new Batch(0, row.subarray(0, length))).toThrow(expect.objectContaining({ code: "corrupt-log" }));
  expect(() => new Batch(0, Buffer.from([9, ...row.subarray(1)]))).toThrow(
    expect.objectContaining({ code: "corrupt-log" }),
  );
});

test("a batch with heads has one form: whatever byte is another, it is refused or says something else", () => {
  const heads = [1, 2].map((n) => ({
    root: Buffer.alloc(32, n),
    timestamp: n,
    signature: Buffer.alloc(64, n),
  }));
  const entries = [Buffer.from('{"n":1}'), Buffer.from('{"n":22}')];
  const packed = packBatch(entries, Buffer.alloc(64, 3), { treeVersion: 2, keyId: Buffer.alloc(32, 4), heads });
  let read = 0;
  for (let bit = 0; bit < 8 * packed.length; bit++) {
    const flipped = Buffer.from(packed);
    flipped[bit >>> 3]! ^= 1 << (bit & 7);
    let batch: Batch;
    try {
      batch = new Batch(0, flipped);
    } catch {
      continue;
    }
    const numbers = Array.from({ length: batch.count }, (_, i) => i);
    const parts = numbers.map((i) => batch.entry(i));
    // Such an entry is no JSON, and without heads none is taken from a journal.
    if (parts.some(({ length }) => length === 0) || !batch.headInfo) continue;
    read++;
    expect(packBatch(parts, batch.digests, headsOf(batch)).equals(flipped), `bit ${bit}`).toBe(true);
  }
  expect(read).toBeGreaterThan(8 * 64);
});
