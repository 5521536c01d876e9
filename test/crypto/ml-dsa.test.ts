/** Private keys of ML-DSA-44: made, and read as OpenSSL writes them. */
import { readFileSync } from "node:fs";
import { ml_dsa44 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, test } from "vitest";
import { generateMlDsaKey, isMlDsaKey, mlDsaKey } from "#cairnlog/engine/crypto/keys/ml-dsa.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { parseVkey } from "#cairnlog/engine/verify/index.js";

const openssl: { privateKey: string; vkey: string } = JSON.parse(
  readFileSync(new URL("../vectors/ml-dsa-44/openssl.json", import.meta.url), "utf8"),
);
const pemOf = (der: Uint8Array) =>
  `-----BEGIN PRIVATE KEY-----\n${Buffer.from(der).toString("base64").replace(/.{64}/g, "$&\n")}\n-----END PRIVATE KEY-----\n`;
const derOf = (pem: string) => Buffer.from(pem.replace(/-----.*-----/g, ""), "base64");
const seed = derOf(openssl.privateKey).subarray(-32);

/** The form with the expanded key, by RFC 9881: lengths are those of an expanded key of 2560 bytes. */
const withExpanded = (expanded: Uint8Array) =>
  Buffer.concat([
    Buffer.from("30820a3e020100300b060960864801650304031104820a2a30820a260420", "hex"),
    seed,
    Buffer.from("04820a00", "hex"),
    expanded,
  ]);
const { secretKey } = ml_dsa44.keygen(new Uint8Array(seed));

describe("a key that OpenSSL wrote", () => {
  const publicKey = Buffer.from(parseVkey(openssl.vkey).material.subarray(1));

  test.each([
    ["with the seed", openssl.privateKey],
    ["with Windows' line ends", openssl.privateKey.replaceAll("\n", "\r\n")],
    ["with the seed and the expanded key", pemOf(withExpanded(secretKey))],
  ])("%s is read", async (_, pem) => {
    expect(isMlDsaKey(pem)).toBe(true);
    const key = await mlDsaKey(pem);
    expect(Buffer.from(key.publicKey).equals(publicKey)).toBe(true);
    const message = Buffer.from("a message");
    const signature = key.sign(message);
    expect(signature).toHaveLength(2420);
    expect(ml_dsa44.verify(signature, message, publicKey)).toBe(true);
  });
});

test("keys that are made differ, and are read again", async () => {
  const pems = [generateMlDsaKey(), generateMlDsaKey()];
  const keys = await Promise.all(pems.map(mlDsaKey));
  expect(pems.map(isMlDsaKey)).toEqual([true, true]);
  expect(pems[0]).toMatch(
    /^-----BEGIN PRIVATE KEY-----\n[A-Za-z0-9+/]{64}\n[A-Za-z0-9+/=]+\n-----END PRIVATE KEY-----\n$/,
  );
  expect(Buffer.compare(keys[0]!.publicKey, keys[1]!.publicKey)).not.toBe(0);
});

test.each([
  ["nothing", ""],
  ["Ed25519", generatePrivateKey("ed25519")],
  ["P-256", generatePrivateKey("ecdsa-p256")],
])("%s is no such key", (_, pem) => {
  expect(isMlDsaKey(pem)).toBe(false);
});

const whole = derOf(openssl.privateKey);
test.each([
  ["without its last byte", whole.subarray(0, -1)],
  ["with one byte more", Buffer.concat([whole, Buffer.of(0)])],
  ["of ML-DSA-65", Buffer.from(whole.toString("hex").replace("03040311", "03040312"), "hex")],
  ["with the expanded key alone", Buffer.from(whole.toString("hex").replace("8020", "0420"), "hex")],
  ["with an expanded key that is not of its seed", withExpanded(secretKey.with(7, secretKey[7]! ^ 1))],
  ["with a short expanded key", withExpanded(secretKey.subarray(1))],
])("one %s is refused, and not shown", async (_, der) => {
  const error = await mlDsaKey(pemOf(der)).catch((caught: unknown) => caught);
  expect(error).toMatchObject({ code: "invalid-key" });
  expect((error as Error).message).not.toContain(pemOf(der).split("\n")[1]);
});
