import fc from "fast-check";
import { expect, test } from "vitest";
import { Batch, packBatch } from "#cairnlog/engine/store/batch.js";
import { jsonValues } from "../texts.js";

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const item = fc.record({
  json: jsonValues().map((value) => Buffer.from(JSON.stringify(value))),
  digest: bytes(32),
  root: bytes(32),
  timestamp: fc.maxSafeNat(),
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

test("a row that is cut short or of another format is refused", () => {
  const row = packBatch([Buffer.from("{}"), Buffer.from("[]")], Buffer.alloc(64), null);
  for (let length = 0; length < row.length; length++)
    expect(() => new Batch(0, row.subarray(0, length))).toThrow(expect.objectContaining({ code: "corrupt-log" }));
  expect(() => new Batch(0, Buffer.from([9, ...row.subarray(1)]))).toThrow(
    expect.objectContaining({ code: "corrupt-log" }),
  );
});
