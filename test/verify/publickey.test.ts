import { execFileSync } from "node:child_process";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { ed25519 } from "@noble/curves/ed25519.js";
import { p256 } from "@noble/curves/nist.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { importPublicKey, keyFromBytes, keyToBytes, opensslKey } from "#cairnlog/engine/crypto/spki.js";
import { CairnlogError } from "#cairnlog/engine/error.js";
import { parsePublicKey } from "#cairnlog/engine/verify/publickey.js";
import { heldMemory } from "../held-memory.js";
import { bytes, ED25519_ID, integer, oddNumber, P256_ID, pem, RSA_ID, rsaKey, sha256, spki, tlv } from "./keys.js";

/** What both parsers say, which must be the same. */
function verdict(text: string): string {
  const said = [parsePublicKey, importPublicKey].map((parse) => {
    try {
      const key = parse(text);
      return `${key.algorithm} ${key.fingerprint}`;
    } catch (error) {
      if (!(error instanceof CairnlogError)) throw error;
      return error.code;
    }
  });
  expect(said[1]).toBe(said[0]);
  return said[0]!;
}

const openssl = (...args: string[]) =>
  execFileSync("openssl", args, { encoding: "utf8", stdio: ["pipe", "pipe", "ignore"] });
const edKey = ed25519.getPublicKey(new Uint8Array(32).fill(1));
const edPem = pem(spki(ED25519_ID, edKey));
const pPoint = p256.Point.fromBytes(p256.getPublicKey(new Uint8Array(32).fill(1)));
const pPem = pem(spki(P256_ID, pPoint.toBytes(false)));
const body = edPem.split("\n")[1]!;

describe("accepted keys", () => {
  const made = [
    ["ed25519", generateKeyPairSync("ed25519").publicKey],
    ["ecdsa-p256", generateKeyPairSync("ec", { namedCurve: "prime256v1" }).publicKey],
    ["rsa-2048", generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey],
    ["rsa-2048", generateKeyPairSync("rsa", { modulusLength: 2052 }).publicKey],
  ] as const;

  it.each(made)("%s as node makes it", (algorithm, publicKey) => {
    const text = publicKey.export({ type: "spki", format: "pem" }) as string;
    const der = publicKey.export({ type: "spki", format: "der" });
    const key = parsePublicKey(text);
    expect(key).toEqual({ algorithm, der: new Uint8Array(der), pem: text, fingerprint: `sha256:${sha256(der)}` });
    const server = importPublicKey(text);
    const raw = algorithm === "ed25519" ? { raw: der.subarray(-32) } : {};
    expect(server).toEqual({ algorithm, fingerprint: key.fingerprint, pem: text, ...raw });
    expect(opensslKey(server.pem).equals(publicKey)).toBe(true);
    const received = keyFromBytes(keyToBytes(server));
    expect(received).toEqual(algorithm === "ed25519" ? { algorithm, ...raw } : { algorithm, pem: text });
  });

  it.each([
    ["ed25519", ["genpkey", "-algorithm", "ed25519"]],
    ["ecdsa-p256", ["ecparam", "-name", "prime256v1", "-genkey", "-noout"]],
    ["rsa-2048", ["genrsa", "2048"]],
  ])("%s as the openssl command makes it", (algorithm, command) => {
    const secret = openssl(...command);
    const text = execFileSync("openssl", ["pkey", "-pubout"], { input: secret, encoding: "utf8" });
    expect(verdict(text)).toMatch(new RegExp(`^${algorithm} sha256:[0-9a-f]{64}$`));
    expect(parsePublicKey(text).pem).toBe(text);
    expect(verdict(secret)).toBe("private-key");
  });

  it("a P-256 point compressed or not is one key", () => {
    const compressed = pem(spki(P256_ID, pPoint.toBytes(true)));
    expect(compressed).not.toBe(pPem);
    expect(parsePublicKey(compressed)).toEqual(parsePublicKey(pPem));
    expect(verdict(compressed)).toBe(verdict(pPem));
  });

  it("white space around and between lines makes no other key", () => {
    const spellings = [
      edPem.replaceAll("\n", "\r\n"),
      edPem.trimEnd(),
      `\n  ${edPem}\n\n`,
      edPem.replace(body, `${body.slice(0, 20)}\n${body.slice(20)}`),
    ];
    for (const text of spellings) expect(parsePublicKey(text)).toEqual(parsePublicKey(edPem));
  });

  it("RSA from 2048 to 8192 bits", () => {
    for (const bits of [2048, 2049, 3072, 8192])
      expect(verdict(pem(spki(RSA_ID, rsaKey(oddNumber(bits), 65537n))))).toMatch(/^rsa/);
  });

  it("come from the server's cache the second time, until 10,000 others were used since", () => {
    const rsa = pem(spki(RSA_ID, rsaKey(oddNumber(2048), 65537n)));
    const blanks = (i: number) => i.toString(2).padStart(14, "0").replaceAll("0", " ").replaceAll("1", "\t");
    const spelling = (i: number) => rsa.replace("\n", `${blanks(i)}\n`);
    const known = importPublicKey(edPem);
    for (let i = 0; i < 9999; i++) importPublicKey(spelling(i));
    expect(importPublicKey(edPem)).toBe(known);
    for (let i = 0; i < 9999; i++) importPublicKey(spelling(i));
    expect(importPublicKey(edPem)).toBe(known);
    for (let i = 0; i < 10_000; i++) importPublicKey(spelling(i));
    expect(importPublicKey(edPem)).not.toBe(known);
  });

  it("are one key in the cache whatever stands around the block, and are not kept with much padding", () => {
    const known = importPublicKey(edPem);
    for (const text of [edPem.trim(), `\n${edPem}\u2003`]) expect(importPublicKey(text)).toBe(known);
    const padded = edPem.padEnd(4000);
    expect(importPublicKey(padded)).toEqual(known);
    expect(importPublicKey(padded)).not.toBe(known);
  });

  it("have OpenSSL's form for as long as fewer than 1,000 others were needed since", () => {
    const known = opensslKey(pPem);
    let point = pPoint;
    const others = Array.from({ length: 1000 }, () => {
      point = point.add(p256.Point.BASE);
      return pem(spki(P256_ID, point.toBytes(false)));
    });
    for (const other of others.slice(1)) opensslKey(other);
    expect(opensslKey(pPem)).toBe(known);
    for (const other of others) opensslKey(other);
    expect(opensslKey(pPem)).not.toBe(known);
    expect(opensslKey(pPem).equals(known)).toBe(true);
  });

  it("keep nothing of what they came with: neither the request nor Node's pool of buffers", () => {
    const count = 100;
    const makeKeys = (first: number) => {
      for (let i = first; i < first + count; i++) {
        const point = ed25519.getPublicKey(new Uint8Array(32).fill(i & 255, 0, 1).fill(i >> 8, 1, 2));
        const request = `${"x".repeat(20_000)}${pem(spki(ED25519_ID, point))}`;
        importPublicKey(Buffer.from(request).toString("latin1").slice(20_000));
        Buffer.allocUnsafe(3000);
      }
    };
    makeKeys(0);
    const before = heldMemory();
    makeKeys(count);
    expect((heldMemory() - before) / count).toBeLessThan(5_000);
  });
});

describe("private keys", () => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const pkcs8 = privateKey.export({ type: "pkcs8", format: "der" });
  const sec1 = privateKey.export({ type: "sec1", format: "der" });

  it.each([
    ["PKCS #8", pem(pkcs8, "PRIVATE KEY")],
    [
      "encrypted",
      privateKey.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" }) as string,
    ],
    ["SEC 1", pem(sec1, "EC PRIVATE KEY")],
    ["OpenSSH", pem(Buffer.from("openssh-key-v1"), "OPENSSH PRIVATE KEY")],
    ["after a public key", edPem + pem(pkcs8, "PRIVATE KEY")],
    ["damaged", "-----BEGIN PRIVATE KEY-----"],
    ["labelled as public, PKCS #8", pem(pkcs8)],
    ["labelled as public, SEC 1", pem(sec1)],
    ["too long", "x".repeat(5000) + pem(pkcs8, "PRIVATE KEY")],
  ])("%s: refused as such, without repeating it", (_, text) => {
    expect(verdict(text)).toBe("private-key");
    expect(() => parsePublicKey(text)).toThrow(/must be considered exposed/);
    try {
      parsePublicKey(text);
    } catch (error) {
      expect(JSON.stringify([error, (error as Error).message])).not.toContain(text.split("\n")[1] || "BEGIN");
    }
  });
});

describe("refused keys", () => {
  const named = (namedCurve: string) =>
    generateKeyPairSync("ec", { namedCurve }).publicKey.export({ type: "spki", format: "pem" }) as string;
  const other = (type: "x25519" | "ed448") =>
    generateKeyPairSync(type as "x25519").publicKey.export({ type: "spki", format: "pem" }) as string;
  const { publicKey: pss } = generateKeyPairSync("rsa-pss", { modulusLength: 2048 });
  const explicit = openssl("ecparam", "-name", "prime256v1", "-param_enc", "explicit", "-genkey", "-noout");
  const certificate = openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=x", "-keyout", "/dev/null");
  const rsa = (modulus: bigint, exponent: bigint) => pem(spki(RSA_ID, rsaKey(modulus, exponent)));
  const good = oddNumber(2048);
  // P-256's p; a coordinate p + x would be another spelling of x.
  const p = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn;
  const offCurve = Buffer.from(pPoint.toBytes(false));
  offCurve[64]! ^= 1;
  const hybrid = Buffer.from(pPoint.toBytes(false));
  hybrid[0] = 6 + (hybrid[64]! & 1);

  it.each([
    ["nothing", ""],
    ["no PEM", body],
    ["P-384", named("secp384r1")],
    ["secp256k1", named("secp256k1")],
    ["X25519", other("x25519")],
    ["Ed448", other("ed448")],
    ["RSA-PSS", pss.export({ type: "spki", format: "pem" }) as string],
    ["explicit curve parameters", execFileSync("openssl", ["pkey", "-pubout"], { input: explicit, encoding: "utf8" })],
    ["certificate", certificate],
    ["PKCS #1 block", pem(rsaKey(good, 65537n), "RSA PUBLIC KEY")],
    ["PKCS #1 under the SPKI label", pem(rsaKey(good, 65537n))],
    ["two blocks", edPem + pPem],
    ["text before", `key:\n${edPem}`],
    ["text after", `${edPem}x`],
    ["PEM headers", edPem.replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\n\n")],
    ["other end label", edPem.replace("END PUBLIC", "END RSA PUBLIC")],
    ["empty line", edPem.replace(body, `${body}\n`)],
    ["base64 without padding", pPem.replaceAll("=", "")],
    ["base64url", edPem.replace(body, `${body.slice(0, -1)}_`)],
    ["superfluous padding", edPem.replace(body, `${body}====`)],
    ["unused base64 bits set", pPem.replace(/.==/, (end) => `${String.fromCharCode(end.charCodeAt(0) + 1)}==`)],
    ["NUL inside", edPem.replace(body, `${body.slice(0, 10)}\0${body.slice(11)}`)],
    ["too long", `${" ".repeat(5000)}${edPem}`],
    ["bytes behind the DER", pem(Buffer.concat([spki(ED25519_ID, edKey), Buffer.from([0])]))],
    ["bytes behind the bit string", pem(tlv(0x30, ED25519_ID, tlv(0x03, Buffer.from([0]), edKey), tlv(0x05)))],
    ["bit string with unused bits", pem(tlv(0x30, ED25519_ID, tlv(0x03, Buffer.from([1]), edKey)))],
    ["empty bit string", pem(tlv(0x30, ED25519_ID, tlv(0x03)))],
    ["long-form DER length", pem(Buffer.concat([bytes("30812a"), spki(ED25519_ID, edKey).subarray(2)]))],
    ["indefinite DER length", pem(Buffer.concat([bytes("3080"), spki(ED25519_ID, edKey).subarray(2), bytes("0000")]))],
    ["truncated DER", pem(spki(ED25519_ID, edKey).subarray(0, -1))],
    ["Ed25519 with NULL parameters", pem(spki(tlv(0x30, bytes("06032b65700500")), edKey))],
    ["Ed25519 of 31 bytes", pem(spki(ED25519_ID, edKey.subarray(1)))],
    ["Ed25519 of 33 bytes", pem(spki(ED25519_ID, Buffer.concat([edKey, edKey.subarray(0, 1)])))],
    ["Ed25519 off the curve", pem(spki(ED25519_ID, bytes(`02${"00".repeat(31)}`)))],
    ["Ed25519 y = p + 3", pem(spki(ED25519_ID, bytes(`f0${"ff".repeat(30)}7f`)))],
    ["P-256 off the curve", pem(spki(P256_ID, offCurve))],
    ["P-256 infinity", pem(spki(P256_ID, bytes("00")))],
    ["P-256 hybrid form", pem(spki(P256_ID, hybrid))],
    ["P-256 x ≥ p", pem(spki(P256_ID, Buffer.concat([Buffer.from([2]), bytes((p + 5n).toString(16))])))],
    ["P-256 parameters missing", pem(spki(tlv(0x30, bytes("06072a8648ce3d0201")), pPoint.toBytes(false)))],
    ["RSA 1024", rsa(oddNumber(1024), 65537n)],
    ["RSA 2047", rsa(oddNumber(2047), 65537n)],
    ["RSA 8193", rsa(oddNumber(8193), 65537n)],
    ["RSA even", rsa(good + 1n, 65537n)],
    ["RSA e = 3", rsa(good, 3n)],
    ["RSA e = 1", rsa(good, 1n)],
    ["RSA e = 65539", rsa(good, 65539n)],
    ["RSA zero modulus", rsa(0n, 65537n)],
    ["RSA without NULL parameters", pem(spki(tlv(0x30, bytes("06092a864886f70d010101")), rsaKey(good, 65537n)))],
    ["RSA negative modulus", pem(spki(RSA_ID, tlv(0x30, tlv(0x02, integer(good).subarray(5)), integer(65537n))))],
    ["RSA padded exponent", pem(spki(RSA_ID, tlv(0x30, integer(good), bytes("020400010001"))))],
    ["RSA empty exponent", pem(spki(RSA_ID, tlv(0x30, integer(good), bytes("0200"))))],
    ["RSA third integer", pem(spki(RSA_ID, tlv(0x30, integer(good), integer(65537n), integer(1n))))],
  ])("%s", (_, text) => expect(verdict(text)).toBe("invalid-key"));

  it("Ed25519 points of small order, in all their encodings", () => {
    const encodings = [
      `01${"00".repeat(31)}`,
      `01${"00".repeat(30)}80`,
      `ec${"ff".repeat(30)}7f`,
      `ec${"ff".repeat(31)}`,
      "00".repeat(32),
      `${"00".repeat(31)}80`,
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
      `ed${"ff".repeat(30)}7f`,
      `ee${"ff".repeat(30)}7f`,
    ];
    for (const encoding of encodings) expect(verdict(pem(spki(ED25519_ID, bytes(encoding))))).toBe("invalid-key");
  });

  it("whatever a byte of the DER is changed to, both parsers agree, and OpenSSL can read what they take", () => {
    const samples = [spki(ED25519_ID, edKey), spki(P256_ID, pPoint.toBytes(false)), spki(RSA_ID, rsaKey(good, 65537n))];
    const change = fc.tuple(fc.constantFrom(...samples), fc.nat(70), fc.integer({ min: 1, max: 255 }));
    fc.assert(
      fc.property(change, ([sample, at, flip]) => {
        const der = Buffer.from(sample);
        der[at % der.length]! ^= flip;
        if (!verdict(pem(der)).startsWith("invalid")) createPublicKey({ key: pem(der), format: "pem" });
      }),
      { numRuns: 300, seed: 7 },
    );
  });

  it("values that are no text", () => {
    for (const value of [undefined, null, 1, {}, [edPem], Buffer.from(edPem)]) {
      expect(() => parsePublicKey(value as string)).toThrow(/must be PEM text/);
    }
  });
});
