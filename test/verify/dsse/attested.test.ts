/** Bundles of envelopes: what the attester says of an envelope is what the envelope says of itself. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { describe, expect, test } from "vitest";
import { verifyEnvelopeBundle } from "#cairnlog/engine/verify/dsse/dsse.js";
import { parsePublicKey } from "#cairnlog/engine/verify/keys/publickey.js";
import { genuine, publicPem, type Recipe, trust } from "../bundle/genuine.js";
import { sha256 } from "../keys/keys.js";
import { envelopeOf, PAYLOAD_TYPE, STATEMENT } from "./envelopes.js";

const builder = generateKeyPairSync("ed25519");
const other = generateKeyPairSync("ed25519");
const envelope = envelopeOf(STATEMENT, builder.privateKey);
const payload = Buffer.from(envelope.payload, "base64").toString();
const dsse = {
  payload_type: PAYLOAD_TYPE,
  public_key: publicPem(builder.publicKey),
  signature: envelope.signatures[0]!.sig,
};
/** The attestation of the envelope, apart from `recipe`. */
const attested = (recipe: Recipe = {}) => {
  const type = recipe.type ?? STATEMENT.predicateType;
  return genuine({ file: sha256(payload), eventType: type, named: { dsse }, ...recipe, type });
};
const { operatorKey } = trust;

async function wrongWith(bundle: unknown, value: unknown = envelope, envelopeKey?: KeyObject): Promise<string[]> {
  const key = envelopeKey && parsePublicKey(publicPem(envelopeKey));
  const { valid, checks } = await verifyEnvelopeBundle(bundle, value, { operatorKey, envelopeKey: key });
  const faults = checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`);
  expect(valid).toBe(!faults.length);
  return faults;
}

test("a bundle of an envelope holds, against the key that the attester named and against one that is given", async () => {
  expect(await wrongWith(attested())).toEqual([]);
  expect(await wrongWith(attested(), envelope, builder.publicKey)).toEqual([]);
});

describe("is refused, although the attester has signed it and the log has it:", () => {
  test.each<[string, Recipe, string]>([
    [
      "another type",
      { type: "https://example.org/other/v1" },
      "The attestation's type is not the statement's predicate.",
    ],
    [
      "a type of the log's own",
      { type: "peer_review", eventType: "https://x.org/peer-review/v1" },
      "not the statement's",
    ],
    ["another type of payload", { named: { dsse: { ...dsse, payload_type: "text/plain" } } }, "under another type."],
    [
      "another key",
      { named: { dsse: { ...dsse, public_key: publicPem(other.publicKey) } } },
      "has not signed this envelope",
    ],
    ["a key that is none", { named: { dsse: { ...dsse, public_key: "no key" } } }, ""],
    ["no word of an envelope", { named: undefined }, "this was attested as a file."],
  ])("%s", async (_, recipe, sentence) => {
    expect(await wrongWith(attested(recipe))).toEqual([expect.stringMatching(/^envelope: /)]);
    expect((await wrongWith(attested(recipe)))[0]).toContain(sentence);
  });

  test("another envelope: of a stranger, and of other content", async () => {
    expect(await wrongWith(attested(), envelopeOf(STATEMENT, other.privateKey))).toEqual([
      expect.stringMatching(/^envelope: .*has not signed/),
    ]);
    expect(await wrongWith(attested(), envelopeOf({ ...STATEMENT, subject: [] }, builder.privateKey))).toEqual([
      "file: The envelope's payload is not the one that was attested.",
    ]);
    expect(await wrongWith(attested(), envelope, other.publicKey)).toEqual([
      expect.stringMatching(/^envelope: .*which is not the key that you gave\.$/),
    ]);
  });
});
