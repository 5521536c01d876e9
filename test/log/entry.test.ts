/**
 * Entries as the log makes and serialises them, compared with the reference's canonical JSON and the offline verifier.
 */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import fc from "fast-check";
import { expect, test } from "vitest";
import { finishEntry, preimageText } from "#cairnlog/engine/log/state/entry.js";
import { canonicalJson } from "#cairnlog/engine/verify/json/canonical.js";
import type { JsonObject } from "#cairnlog/engine/verify/json/shape.js";
import { checkEntry, type Entry, entryPreimage } from "#cairnlog/engine/verify/tree/entry.js";
import { jsonValues, texts } from "../texts.js";
import { momentNumber, sha256 } from "./history/entries.js";

const payloads = fc.dictionary(texts(), jsonValues()) as fc.Arbitrary<JsonObject>;
const previousHashes = fc.option(texts().map(sha256));
const timestamp = momentNumber(7);
const sha512 = (preimage: Uint8Array) => [
  { algorithm: "sha2-512", digest_hex: createHash("sha512").update(preimage).digest("hex") },
];

test("the hashed bytes are the reference's canonical JSON, in both versions", () => {
  fc.assert(
    fc.property(payloads, previousHashes, (payload, previous_hash) => {
      const first = canonicalize(payload) + (previous_hash ?? "");
      const second = `service.log.entry.v2\0${canonicalize({ payload, previous_hash, timestamp })}`;
      for (const [chain_version, wanted] of [[1, first] as const, [2, second] as const]) {
        expect(preimageText(chain_version, canonicalJson(payload), previous_hash, timestamp)).toBe(wanted);
        const entry = { payload, previous_hash, timestamp, chain_version };
        expect(Buffer.from(entryPreimage(entry)).toString()).toBe(wanted);
      }
    }),
    { numRuns: 500 },
  );
});

test("a served entry has the appended content, and the verifier accepts it", () => {
  fc.assert(
    fc.property(payloads, texts(), previousHashes, fc.boolean(), (payload, event_type, previous_hash, isFurther) => {
      const draft = { id: 7, timestamp, event_type, canonicalPayload: canonicalJson(payload) };
      const { text, entryHash, further } = finishEntry(draft, previous_hash, isFurther ? sha512 : null);
      const entry = JSON.parse(text) as Entry;
      expect(entry).toEqual({
        id: 7,
        timestamp,
        event_type,
        payload: JSON.parse(canonicalize(payload)!),
        previous_hash,
        entry_hash: entryHash,
        chain_version: 2,
        entry_hashes: [
          { algorithm: "sha2-256", digest_hex: entryHash, is_primary: true },
          ...(isFurther ? [{ ...sha512(entryPreimage(entry))[0], is_primary: false }] : []),
        ],
      });
      expect(further).toEqual(isFurther ? sha512(entryPreimage(entry)) : []);
      expect(checkEntry(entry)).toEqual([]);
    }),
    { numRuns: 500 },
  );
});
