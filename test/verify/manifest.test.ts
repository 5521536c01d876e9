import { describe, expect, it } from "vitest";
import {
  attestationPayloads,
  compositeHash,
  type Manifest,
  manifestHash,
  normaliseContentHash,
  signingPayload,
} from "#cairnlog/engine/verify/events/manifest.js";
import { sha256 } from "./keys/keys.js";

const content_hash = `sha256:${sha256("text")}`;
const bare: Manifest = {
  document: { title: "T", content_hash, tags: ["b", "a"] },
  attestations: [],
  extra: { z: 1, a: 2 },
};
const signed: Manifest = { ...bare, attestations: [{ id: "1" }, { id: "2" }] };
const text = (attestations: string) =>
  `{"attestations":${attestations},"document":{"content_hash":"${content_hash}","tags":["b","a"],"title":"T"},"extra":{"a":2,"z":1}}`;
const payloads = (manifest: Manifest, position: number) =>
  attestationPayloads(manifest, position).map(({ covers, bytes }) => [covers, Buffer.from(bytes).toString()]);

it("a manifest is signed and hashed in canonical form, as submitted", () => {
  expect(Buffer.from(signingPayload(bare)).toString()).toBe(text("[]"));
  expect(manifestHash(bare)).toBe(sha256(text("[]")));
  expect(manifestHash(signed)).toBe(sha256(text('[{"id":"1"},{"id":"2"}]')));
  expect(() => manifestHash({ ...bare, extra: "\ud83d" })).toThrow(expect.objectContaining({ code: "not-i-json" }));
});

it("an attestation covers the document with what was attested before, or the document alone", () => {
  expect(payloads(bare, 0)).toEqual([["document", text("[]")]]);
  expect(payloads(signed, 0)).toEqual([["document", text("[]")]]);
  expect(payloads(signed, 1)).toEqual([
    ["document-and-prior", text('[{"id":"1"}]')],
    ["document", text("[]")],
  ]);
  expect(payloads(signed, 2)[0]).toEqual(["document-and-prior", text('[{"id":"1"},{"id":"2"}]')]);
  for (const position of [-1, 3, 0.5, Number.NaN])
    expect(() => payloads(signed, position)).toThrow(
      expect.objectContaining({ code: "invalid-input", message: expect.stringContaining("no attestation number") }),
    );
});

it("the hash of a composite covers its title and the hashes of its parts, in their order", () => {
  const [a, b] = [`sha256:${sha256("a")}`, `sha256:${sha256("b")}`];
  expect(compositeHash("T", [a, b])).toBe(`sha256:${sha256(`{"parts":["${a}","${b}"],"title":"T"}`)}`);
  expect(compositeHash("T", [b, a])).not.toBe(compositeHash("T", [a, b]));
});

describe("content hashes", () => {
  const hex = sha256("text");

  it.each([hex, hex.toUpperCase(), `sha256:${hex}`, `sha256:${hex.toUpperCase()}`])("%s is normalised", (hash) => {
    expect(normaliseContentHash(hash)).toBe(`sha256:${hex}`);
  });

  it.each([
    "",
    "sha256:",
    hex.slice(1),
    `${hex}0`,
    ` ${hex}`,
    `${hex}\n`,
    `sha512:${hex}`,
    `sha256:sha256:${hex}`,
    null,
    1,
    [hex],
  ])("%j is refused", (hash) => expect(normaliseContentHash(hash)).toBeUndefined());
});
