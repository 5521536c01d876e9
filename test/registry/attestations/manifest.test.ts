import canonicalize from "canonicalize";
import fc from "fast-check";
import { expect, it } from "vitest";
import { ManifestPayloads } from "#cairnlog/engine/registry/attestations/manifest.js";
import { attestationPayloads, type Manifest } from "#cairnlog/engine/verify/events/manifest.js";
import { jsonValues } from "../../texts.js";

const text = ({ covers, bytes }: { covers: string; bytes: Uint8Array }) => [
  covers,
  Buffer.from(bytes).toString("utf8"),
];

it("payloads of every position are those of the verifier", () => {
  // Names that sort before or after `attestations`, and contents that look like it.
  const name = fc.constantFrom(
    "",
    "a",
    "attestation",
    "attestations!",
    "attestationsx",
    "z",
    "é",
    "🪨",
    '"attestations":[]',
    "A",
  );
  const value = fc.oneof(jsonValues(), fc.constant('"attestations":[]'), fc.constant({ attestations: [] }));
  fc.assert(
    fc.property(fc.dictionary(name, value), fc.array(value, { maxLength: 5 }), (members, attestations) => {
      const manifest = { ...members, document: { title: "T", content_hash: "" }, attestations } as unknown as Manifest;
      const payloads = new ManifestPayloads(manifest);
      const cut = (position: number) => canonicalize({ ...manifest, attestations: attestations.slice(0, position) });
      for (let position = 0; position <= attestations.length; position++) {
        const found = [...payloads.of(position)].map(text);
        expect(found).toEqual(attestationPayloads(manifest, position).map(text));
        const alone = ["document", cut(0)];
        expect(found).toEqual(position ? [["document-and-prior", cut(position)], alone] : [alone]);
      }
    }),
    { numRuns: 300 },
  );
});
