/** The stored form of entries: it gives back every byte, in few bytes, and its codes stay what they are. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Batch, packBatch, storedBatch } from "#cairnlog/engine/store/schema/batch.js";
import { expanded } from "#cairnlog/engine/store/schema/shorthand.js";
import { jsonValues } from "../texts.js";

const hex = (fill: number) => Buffer.alloc(32, fill).toString("hex");
const OWN = Buffer.alloc(32, 0xab);
const PREVIOUS = Buffer.alloc(32, 0x12);
const TIME = "2026-11-25T16:17:23.031827Z";
const SIGNATURE = Buffer.from(Array.from({ length: 64 }, (_, i) => 3 * i + 1)).toString("base64");

/** An attestation as it is served. */
const ATTESTATION =
  `{"id":30000,"timestamp":"${TIME}","event_type":"https://x-service.example/predicates/authorship/v1","payload":` +
  `{"attestation_id":"dc35f0a2-3ef7-44b3-83cf-76c829988361","attestation_type":"authorship","document_hash":"sha256:${hex(7)}",` +
  `"document_title":"short 25000 document","intent_statement":null,"manifest_hash":"${hex(8)}","signature":"${SIGNATURE}",` +
  `"signature_algorithm":"ed25519","signer_key_fingerprint":"sha256:${hex(9)}","tags":["load"],"timestamp":"${TIME}"},` +
  `"previous_hash":"${PREVIOUS.toString("hex")}","entry_hash":"${OWN.toString("hex")}","chain_version":2,"entry_hashes":` +
  `[{"algorithm":"sha2-256","digest_hex":"${OWN.toString("hex")}","is_primary":true}]}`;
const HEADER_AND_END = 8 + 4;

/** The stored rows of entries: the part that holds the entries, and what the row gives back. */
function throughStore(entries: readonly Uint8Array[], digests: Uint8Array) {
  const packed = packBatch(entries, digests, null);
  const stored = storedBatch(packed);
  const batch = new Batch(5, stored);
  const read = entries.map((_, i) => batch.entry(i));
  return { packed, stored, batch, read };
}

test("an attestation takes a quarter of its bytes", () => {
  const digests = Buffer.concat([PREVIOUS, OWN]);
  const { stored, batch, packed } = throughStore([Buffer.from("{}"), Buffer.from(ATTESTATION)], digests);
  expect(batch.text(1)).toBe(ATTESTATION);
  expect(batch.packed.equals(packed)).toBe(true);
  const entry = stored.length - 2 * (HEADER_AND_END - 4 + 32) - "{}".length;
  expect(entry).toBeLessThan(ATTESTATION.length / 4);
});

test("its stored bytes are those of every version", () => {
  const digests = Buffer.concat([PREVIOUS, OWN]);
  const { stored } = throughStore([Buffer.from("{}"), Buffer.from(ATTESTATION)], digests);
  const at = 8 + 2 * (4 + 32) + "{}".length;
  const text = (value: string) => Buffer.from(value).toString("hex");
  expect(stored.subarray(at).toString("hex")).toBe(
    [
      `07${text("30000")}08`,
      "0520261125161723031827",
      "0904dc35f0a23ef744b383cf76c829988361",
      `0d02${hex(7)}`,
      `10${text("short 25000 document")}`,
      `1102${hex(8)}`,
      `1303${Buffer.from(SIGNATURE, "base64").toString("hex")}`,
      `1402${hex(9)}`,
      `16${text("load")}1706`,
      "19011b001c001d",
    ].join(""),
  );
});

/** Texts beside and inside the forms that have codes. */
const fragments = fc.oneof(
  fc.constantFrom(
    ...ATTESTATION.split(/(?<=")/),
    ...[OWN, PREVIOUS].map((digest) => `${digest.toString("hex")}"`),
    `${OWN.toString("hex").toUpperCase()}"`,
    `"${hex(1).slice(1)}g"`,
    `"${hex(1)}`,
    `"${SIGNATURE.slice(0, -3)}B=="`,
    `"${SIGNATURE.slice(0, -1)}A"`,
    `"${SIGNATURE.replace("A", "-")}"`,
    '"dc35f0a2-3ef7-44b3-83cf-76c82998836G"',
    '"dc35f0a2-3ef7-44b3-83cf+76c829988361"',
    '"DC35F0A2-3ef7-44b3-83cf-76c829988361"',
    `"${TIME.replace("T", " ")}"`,
    `"${TIME.replace("8", "x")}"`,
    `"9999-99-99T99:99:99.999999Z"`,
    "\0\u0001\u0007\u001f\u001f",
    '","document_hash":"sha256',
    "é😀",
  ),
  fc.string(),
  jsonValues().map((value) => JSON.stringify(value)),
);
const entryBytes = fc.oneof(
  fc
    .tuple(fc.boolean(), fc.array(fragments, { maxLength: 40 }))
    .map(([isEntry, parts]) => Buffer.from(`${isEntry ? '{"id":' : ""}${parts.join("")}`)),
  fc.uint8Array({ maxLength: 300 }),
  fc.tuple(fc.nat(ATTESTATION.length - 1), fc.nat(255)).map(([at, byte]) => {
    const changed = Buffer.from(ATTESTATION);
    changed[at] = byte;
    return changed;
  }),
  fc.nat(ATTESTATION.length).map((end) => Buffer.from(ATTESTATION.slice(0, end))),
);
/** Any bytes that do not begin with a code: entries are JSON. */
const entry = entryBytes.filter((bytes) => !(bytes[0]! < 32));

test("every byte comes back, whatever an entry holds", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(entry, fc.constantFrom(OWN, PREVIOUS, Buffer.alloc(32))), { minLength: 1, maxLength: 5 }),
      (items) => {
        const entries = items.map(([bytes]) => bytes);
        const { packed, batch, read } = throughStore(entries, Buffer.concat(items.map(([, digest]) => digest)));
        for (const [i, bytes] of entries.entries()) {
          expect(Buffer.compare(read[i]!, bytes)).toBe(0);
          expect(batch.text(i)).toBe(Buffer.from(bytes).toString("utf8"));
        }
        expect(batch.packed.equals(packed)).toBe(true);
      },
    ),
    { numRuns: 1_000 },
  );
});

test("a long entry comes back", () => {
  const long = Buffer.from(`{"id":7,"payload":{"text":"${'\0x"sha256:'.repeat(300_000)}"}}`);
  expect(Buffer.compare(throughStore([long], OWN).read[0]!, long)).toBe(0);
});

test("damaged bytes are read to their end, and no further", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 500 }), fc.boolean(), (bytes, hasPrevious) => {
      const digests = hasPrevious ? Buffer.concat([PREVIOUS, OWN]) : OWN;
      expect(expanded(bytes, digests).length).toBeLessThanOrEqual(128 * bytes.length);
    }),
  );
});
