import fc from "fast-check";
import { expect, test } from "vitest";
import { importPublicKey } from "#cairnlog/engine/crypto/keys/spki.js";
import { createdKey, newRow, registrationOf } from "#cairnlog/engine/registry/events/keys.js";
import { ALGORITHMS, nodeSigner } from "../world.js";

const TIME = "2026-01-02T03:04:05.678000Z";
const keys = [...ALGORITHMS, ...ALGORITHMS].map((algorithm) => importPublicKey(nodeSigner(algorithm).pem));

const registration = fc.record({
  key: fc.constantFrom(...keys),
  pseudonym: fc.string(),
  expiration_date: fc.constantFrom(null, "2030-01-02T03:04:05.678000Z"),
  possession_signature: fc.constantFrom(null, "c2lnbmF0dXJl"),
});

test("a registration that was just made gives the row that reading its payload gives, however they come in turns", () => {
  fc.assert(
    fc.property(fc.array(registration, { minLength: 1, maxLength: 5 }), (all) => {
      const events = all.map((one, i) => {
        const event = { ...registrationOf(one), id: i + 1, leafIndex: i, timestamp: TIME };
        return { event, row: newRow(createdKey(event)!, event, null, undefined) };
      });
      for (const { event, row } of events) {
        const read = { ...event, payload: structuredClone(event.payload) };
        expect(newRow(createdKey(read)!, read, null, undefined)).toEqual(row);
      }
    }),
  );
});
