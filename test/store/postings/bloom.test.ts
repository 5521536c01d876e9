/** The Bloom filter of a run: which bits a term sets is a format on disk. */
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { addRecordToBloom, createBloom, mayContain, probeOf } from "#cairnlog/engine/store/postings/run-format.js";
import { TERM_BYTES } from "#cairnlog/engine/store/postings/term.js";

const PROBES = 7;
const term = fc.uint8Array({ minLength: TERM_BYTES, maxLength: TERM_BYTES }).map((bytes) => Buffer.from(bytes));

/** The bits by their definition, in numbers of any size. */
function bitsOf(record: Buffer, bits: number): Set<number> {
  const start = BigInt(record.readUInt32LE(TERM_BYTES - 8));
  const step = BigInt((record.readUInt32LE(TERM_BYTES - 4) | 1) >>> 0);
  return new Set(Array.from({ length: PROBES }, (_, i) => Number((start + BigInt(i) * step) % BigInt(bits))));
}

test("a term sets the bits start, start + step, … of the filter, and nothing else", () => {
  fc.assert(
    fc.property(term, fc.integer({ min: 8, max: 5_000 }), (record, length) => {
      const bloom = new Uint8Array(length);
      addRecordToBloom(bloom, record, 0);
      const set = [...bloom.keys()].flatMap((byte) =>
        [0, 1, 2, 3, 4, 5, 6, 7].filter((bit) => bloom[byte]! & (1 << bit)).map((bit) => 8 * byte + bit),
      );
      expect(new Set(set)).toEqual(bitsOf(record, 8 * length));
      expect(mayContain(bloom, probeOf(record.toString("latin1")))).toBe(true);
    }),
  );
});

test("a filter without any one bit of a term denies it", () => {
  fc.assert(
    fc.property(term, fc.integer({ min: 8, max: 500 }), (record, length) => {
      for (const bit of bitsOf(record, 8 * length)) {
        const bloom = new Uint8Array(length).fill(0xff);
        bloom[bit >>> 3]! &= ~(1 << (bit & 7));
        expect(mayContain(bloom, probeOf(record.toString("latin1")))).toBe(false);
      }
    }),
  );
});

test("a full filter takes at most two of a hundred other terms for its own", () => {
  const count = 20_000;
  const bloom = createBloom(count);
  for (let i = 0; i < count; i++) addRecordToBloom(bloom, randomBytes(TERM_BYTES), 0);
  let taken = 0;
  for (let i = 0; i < count; i++) if (mayContain(bloom, probeOf(randomBytes(TERM_BYTES).toString("latin1")))) taken++;
  expect(taken).toBeGreaterThan(0);
  expect(taken).toBeLessThan(count / 50);
});
