/** DSSE envelopes: the example of the specification, envelopes made with node:crypto, and what is none. */
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  dsseSignatureOf,
  envelopeSubject,
  inTotoStatement,
  parseDsseEnvelope,
  parsePublicKey,
  preAuthEncoding,
} from "#cairnlog/engine/verify/index.js";
import { encodingOf, envelopeOf, PAYLOAD_TYPE, STATEMENT } from "./envelopes.js";

const keyOf = ({ publicKey }: { publicKey: KeyObject }) =>
  parsePublicKey(publicKey.export({ type: "spki", format: "pem" }) as string);
const refused = (sentence: string | RegExp) =>
  expect.objectContaining({ code: "invalid-input", message: expect.stringMatching(sentence) });

test("the example of the specification, whose P-256 signature is 64 bytes", async () => {
  const key = parsePublicKey(
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZ805D3eqNZywjCI19lInBJOp7YMr\nCrzAH3CVTAOQ0jgMeCvVTiaRJaRPRDOv8UMs6U4SvKc6pnrIDOoSYI3fdA==\n-----END PUBLIC KEY-----\n",
  );
  const sig = "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA==";
  const payloadType = "http://example.com/HelloWorld";
  const envelope = parseDsseEnvelope({ payload: "aGVsbG8gd29ybGQ=", payloadType, signatures: [{ sig }] });
  expect(Buffer.from(preAuthEncoding(envelope)).toString()).toBe(
    "DSSEv1 29 http://example.com/HelloWorld 11 hello world",
  );
  expect(await dsseSignatureOf(envelope, key)).toEqual(new Uint8Array(Buffer.from(sig, "base64")));
  const other = { ...envelope, payloadType: "http://example.com/HelloWorle" };
  expect(await dsseSignatureOf(other, key)).toBeUndefined();
  expect(() => inTotoStatement(envelope)).toThrow("must be of the type application/vnd.in-toto+json");
});

describe.each([
  ["ed25519", generateKeyPairSync("ed25519")],
  ["ecdsa-p256", generateKeyPairSync("ec", { namedCurve: "P-256" })],
  ["rsa-2048", generateKeyPairSync("rsa", { modulusLength: 2048 })],
] as const)("an envelope by a key of %s", (_, pair) => {
  test("gives the document to attest, with the key and its signature", async () => {
    const key = keyOf(pair);
    const envelope = envelopeOf(STATEMENT, pair.privateKey);
    const { document, type } = await envelopeSubject(envelope, key);
    expect([document.title, type]).toEqual(["app-1.0.tar.gz", STATEMENT.predicateType]);
    expect(document.dsse).toEqual({
      payload_type: "application/vnd.in-toto+json",
      public_key: key.pem,
      signature: envelope.signatures[0]!.sig,
    });
    // One that others have signed, too, and in the other alphabet of base64.
    const other = envelopeOf(STATEMENT, generateKeyPairSync("ed25519").privateKey).signatures;
    const urlSafe = envelope.payload.replaceAll("+", "-").replaceAll("/", "_");
    const both = { ...envelope, payload: urlSafe, signatures: [...other, ...envelope.signatures] };
    expect(await envelopeSubject(both, key)).toEqual({ document, type });
  });

  test("that was changed, or is by another key, gives none", async () => {
    const key = keyOf(pair);
    const envelope = envelopeOf(STATEMENT, pair.privateKey);
    const changed = { ...STATEMENT, predicateType: "https://example.com/other" };
    const swapped = { ...envelope, payload: Buffer.from(JSON.stringify(changed)).toString("base64") };
    await expect(envelopeSubject(swapped, key)).rejects.toThrow("has not signed this envelope");
    await expect(envelopeSubject(envelope, keyOf(generateKeyPairSync("ed25519")))).rejects.toThrow("has not signed");
    // A signature over the payload alone is none of the envelope.
    const digest = pair.privateKey.asymmetricKeyType === "ed25519" ? null : "sha256";
    const sig = sign(digest, Buffer.from(envelope.payload, "base64"), pair.privateKey).toString("base64");
    await expect(envelopeSubject({ ...envelope, signatures: [{ sig }] }, key)).rejects.toThrow("has not signed");
  });
});

/** An envelope whose statement is this text, signed. */
function signedText(text: string, { privateKey } = generateKeyPairSync("ed25519")) {
  const payload = Buffer.from(text);
  const sig = sign(null, encodingOf(payload), privateKey).toString("base64");
  return { payloadType: PAYLOAD_TYPE, payload: payload.toString("base64"), signatures: [{ sig }] };
}

describe("what other makers write", () => {
  const pair = generateKeyPairSync("ed25519");
  const key = keyOf(pair);
  const good = envelopeOf(STATEMENT, pair.privateKey);

  test("numbers that no double holds, and exponents", async () => {
    const text = JSON.stringify(STATEMENT).replace(
      '"predicate":{',
      '"predicate":{"size":9007199254740993,"ns":1763999999123456789,"tiny":1e-999,"pi":3.14159265358979323846,',
    );
    expect(text).toContain("9007199254740993");
    const { document } = await envelopeSubject(signedText(text, pair), key);
    expect(document.title).toBe("app-1.0.tar.gz");
  });

  test.each([
    ["empty", { sig: "" }],
    ["of unknown form", { sig: "?" }],
    ["absent", { keyid: "a" }],
    ["no object", "a"],
  ])("a signature that is %s among good ones", async (_, odd) => {
    for (const signatures of [
      [odd, ...good.signatures],
      [...good.signatures, odd],
    ])
      expect((await envelopeSubject({ ...good, signatures }, key)).type).toBe(STATEMENT.predicateType);
    expect(() => parseDsseEnvelope({ ...good, signatures: [odd, odd] })).toThrow("a sig in base64");
  });

  test("base64url without padding, of every length", async () => {
    for (const title of ["a", "ab", "abc", "abcd"]) {
      const envelope = envelopeOf({ ...STATEMENT, subject: [{ name: title }] }, pair.privateKey);
      const bare = (text: string) => Buffer.from(text, "base64").toString("base64url");
      const signatures = envelope.signatures.map(({ sig }) => ({ sig: bare(sig) }));
      const { document } = await envelopeSubject({ ...envelope, payload: bare(envelope.payload), signatures }, key);
      expect(document).toMatchObject({ title, dsse: { signature: envelope.signatures[0]!.sig } });
    }
    for (const payload of ["A", "AAAAA", "AB", "A=", "AA=", "AAA==", "=", "===="])
      expect(() => parseDsseEnvelope({ ...good, payload }), payload).toThrow("payload must be base64");
  });

  test("`_` names no subject", async () => {
    const titled = async (...names: (string | undefined)[]) =>
      (
        await envelopeSubject(
          envelopeOf({ ...STATEMENT, subject: names.map((name) => ({ name })) }, pair.privateKey),
          key,
        )
      ).document.title;
    expect(await titled("_", "app")).toBe("app");
    expect(await titled("_", undefined, "")).toBe(STATEMENT.predicateType);
  });

  test.each([
    ["a".repeat(501), "a".repeat(500)],
    ["a".repeat(500), "a".repeat(500)],
    ["\u{1f600}".repeat(501), "\u{1f600}".repeat(500)],
    [`a${"\u{1f600}".repeat(1000)}`, `a${"\u{1f600}".repeat(499)}`],
  ])("a name that is too long for a title is cut (%#)", async (name, title) => {
    const envelope = envelopeOf({ ...STATEMENT, subject: [{ name }] }, pair.privateKey);
    expect((await envelopeSubject(envelope, key)).document.title).toBe(title);
  });
});

test("what is no envelope of a statement is refused with a sentence", () => {
  const { privateKey } = generateKeyPairSync("ed25519");
  const good = envelopeOf(STATEMENT, privateKey);
  const holding = (payload: string) => ({ ...good, payload: Buffer.from(payload).toString("base64") });
  for (const [value, sentence] of [
    [null, /must be an object/],
    [[good], /must be an object/],
    [{ ...good, payloadType: 1 }, /payloadType must be a string/],
    [{ ...good, payload: "a" }, /payload must be base64/],
    [{ ...good, signatures: [] }, /1 to 100 signatures/],
    [{ ...good, signatures: Array.from({ length: 101 }, () => good.signatures[0]) }, /1 to 100 signatures/],
    [{ ...good, signatures: [{ sig: "" }] }, /a sig in base64/],
    [{ ...good, signatures: ["sig"] }, /a sig in base64/],
    [{ ...good, payloadType: "text/plain" }, /of the type application\/vnd.in-toto\+json/],
    [holding("{"), /not JSON/],
    [
      holding('{"_type": "https://in-toto.io/Statement/v1", "predicateType": "a", "predicateType": "b"}'),
      /unique names/,
    ],
    [holding("[]"), /must be a statement/],
    [holding(JSON.stringify({ ...STATEMENT, _type: "https://in-toto.io/Statement/v2" })), /must be a statement/],
    [holding(JSON.stringify({ ...STATEMENT, predicateType: undefined })), /a predicateType/],
    [holding(JSON.stringify({ ...STATEMENT, subject: {} })), /list of subjects/],
  ] as const)
    expect(() => inTotoStatement(parseDsseEnvelope(value))).toThrow(refused(sentence));
});
