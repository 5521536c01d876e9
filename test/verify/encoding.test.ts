/** Conversion between bytes and text: each value has one form. The results are compared with Node's own. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeBase64,
  encodeBase64,
  fromHex,
  isHexHash,
  isPrefixedHash,
  toHex,
  utf8,
} from "#cairnlog/engine/verify/bytes/encoding.js";
import { normaliseContentHash } from "#cairnlog/engine/verify/events/manifest.js";
import { texts } from "../texts.js";
import { sha256 } from "./keys/keys.js";

const someBytes = fc.uint8Array({ maxLength: 40 });

it("what is written is what Node writes, and is read again", () => {
  fc.assert(
    fc.property(someBytes, texts(), (bytes, text) => {
      const { buffer, byteOffset, length } = bytes;
      const node = Buffer.from(buffer, byteOffset, length);
      expect(encodeBase64(bytes)).toBe(node.toString("base64"));
      expect(toHex(bytes)).toBe(node.toString("hex"));
      expect(decodeBase64(node.toString("base64"))).toEqual(bytes);
      expect(fromHex(node.toString("hex"))).toEqual(bytes);
      expect(Buffer.from(utf8(text)).toString("utf8")).toBe(text);
    }),
  );
});

describe("base64", () => {
  it("has one spelling: of all texts of up to four characters those are taken that Node writes again", () => {
    const characters = [..."AQgwBCDE=/+-_ \n"];
    const all = (length: number): string[] =>
      length ? all(length - 1).flatMap((head) => characters.map((last) => head + last)) : [""];
    const isWritten = (text: string) => Buffer.from(text, "base64").toString("base64") === text;
    const wrong: string[] = [];
    for (let length = 0; length <= 4; length++)
      for (const text of all(length)) if ((decodeBase64(text) !== undefined) !== isWritten(text)) wrong.push(text);
    expect(wrong).toEqual([]);
  });

  it.each([
    "QQ",
    "QQ=",
    "QQ===",
    "QR==",
    "QUF=",
    "QUJ=",
    "QQ==QQ==",
    "QQ==\n",
    " QQ==",
    "Q Q==",
    "QQ-_",
    "QUFB\n",
    "\nQUFB",
    "=",
    "====",
    "QUFBQR==",
    null,
    7,
    ["QQ=="],
    { toString: () => "QQ==" },
  ])("%j is refused", (text) => expect(decodeBase64(text)).toBeUndefined());
});

it("a hash is 64 lower-case hexadecimal characters, and a text", () => {
  const hash = sha256("x");
  expect(isHexHash(hash)).toBe(true);
  for (const value of [
    hash.toUpperCase(),
    hash.slice(1),
    `${hash}0`,
    `${hash}\n`,
    ` ${hash}`,
    `0${hash}`,
    `g${hash.slice(1)}`,
    [hash],
    { toString: () => hash },
    null,
    1,
  ])
    expect(isHexHash(value)).toBe(false);
});

it("hashes in hex are told as regular expressions tell them", () => {
  const character = fc.oneof(
    { weight: 40, arbitrary: fc.constantFrom(..."0123456789abcdef") },
    fc.constantFrom("g", "A", "F", "/", ":", "@", "`", "\u0000", "\u007f", "\u0080", "ａ", "\u0130", "\u212a"),
  );
  const hex = fc.oneof(
    fc.array(character, { minLength: 63, maxLength: 65 }),
    fc.array(fc.constantFrom(..."0123456789abcdefAF"), { minLength: 64, maxLength: 64 }),
  );
  const text = fc
    .tuple(fc.constantFrom("", "sha256:", "SHA256:", "sha256", "sha256::"), hex)
    .map(([prefix, characters]) => prefix + characters.join(""));
  fc.assert(
    fc.property(text, (value) => {
      expect(isHexHash(value)).toBe(/^[0-9a-f]{64}$/.test(value));
      expect(isPrefixedHash(value)).toBe(/^sha256:[0-9a-f]{64}$/.test(value));
      expect(normaliseContentHash(value) !== undefined).toBe(/^(?:sha256:)?[0-9a-f]{64}$/i.test(value));
    }),
    { numRuns: 2_000 },
  );
});
