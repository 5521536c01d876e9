import fc from "fast-check";
import { expect, it } from "vitest";
import type { AttestationReceipt } from "#cairnlog/engine/registry/attestations/receipts.js";
import { spellBatch, spellReceipt } from "#cairnlog/server/http/routes/signing/receipts.js";

const hex = fc.stringMatching(/^[0-9a-f]{64}$/);
/** What clients choose, or what imported history may hold: quotation marks, controls, lone surrogates. */
const text = fc.string({ unit: "binary" });
const lone = fc.constantFrom("\ud800", '"', "\\", "\u2028", "\u007f", "é", "").chain((odd) => text.map((t) => t + odd));
const any = fc.oneof(text, lone, fc.string());
const number = fc.nat();
const receipt: fc.Arbitrary<AttestationReceipt> = fc.record({
  attestation: fc.record(
    {
      id: any,
      type: any,
      scope: fc.record({ content_hash: any }),
      signer_key_fingerprint: any,
      signature_algorithm: any,
      signature: any,
      timestamp: any,
      intent_statement: any,
    },
    {
      requiredKeys: ["id", "type", "scope", "signer_key_fingerprint", "signature_algorithm", "signature", "timestamp"],
    },
  ),
  fingerprint: any,
  pseudonym: any,
  log_entry_id: number,
  leaf_index: number,
  entry_hash: hex,
  manifest_hash: hex,
  sth: fc.option(
    fc.record({
      tree_size: number,
      root_hash: hex,
      signature: fc.base64String(),
      timestamp: fc.constant("2026-11-23T10:00:00.000001Z"),
      key_id: hex.map((digits) => `sha256:${digits}`),
      tree_version: fc.constantFrom(1 as const, 2 as const),
    }),
  ),
  duplicate: fc.boolean(),
  signed: fc.record({ attestation_type: fc.boolean(), intent_statement: fc.boolean() }),
});

it("a receipt is spelled as JSON.stringify spells it", () => {
  fc.assert(
    fc.property(receipt, (one) => {
      expect(spellReceipt(one)).toBe(JSON.stringify(one));
    }),
    { numRuns: 1000 },
  );
});

it("the answer to a batch is spelled as JSON.stringify spells it", () => {
  const refused = fc.record({ status: fc.constant(422), problem: fc.record({ title: any, detail: any }) });
  const recorded = fc.record({ status: fc.constantFrom(200, 201), receipt });
  fc.assert(
    fc.property(fc.array(fc.oneof(refused, recorded), { maxLength: 5 }), (results) => {
      expect(spellBatch({ results })).toBe(JSON.stringify({ results }));
    }),
    { numRuns: 300 },
  );
});
