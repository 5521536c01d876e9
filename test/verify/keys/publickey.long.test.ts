import { execFileSync } from "node:child_process";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { ed25519 } from "@noble/curves/ed25519.js";
import { p256 } from "@noble/curves/nist.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { importPublicKey, keyFromBytes, keyToBytes, opensslKey } from "#cairnlog/engine/crypto/keys/spki.js";
import { parsePublicKey } from "#cairnlog/engine/verify/keys/publickey.js";
import { heldMemory } from "../../held-memory.js";
import {
  ACCEPTED_KEYS,
  ED25519_PEM,
  P256_COMPRESSED_PEM,
  P256_PEM,
  REFUSED_KEYS,
  RSA_PEM,
  SPELLINGS,
} from "./keycases.js";
import { ED25519_ID, P256_ID, pem, sha256, spki } from "./keys.js";

/** The verdict of both parsers, which must be the same. */
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

  it.each(ACCEPTED_KEYS)("%s", (algorithm, text) => {
    expect(verdict(text)).toMatch(new RegExp(`^${algorithm} sha256:[0-9a-f]{64}$`));
  });

  it("a P-256 point compressed or not is one key", () => {
    expect(P256_COMPRESSED_PEM).not.toBe(P256_PEM);
    expect(parsePublicKey(P256_COMPRESSED_PEM)).toEqual(parsePublicKey(P256_PEM));
    expect(verdict(P256_COMPRESSED_PEM)).toBe(verdict(P256_PEM));
  });

  it.each(SPELLINGS)("%s, it is the same key", (_, text) => {
    expect(parsePublicKey(text)).toEqual(parsePublicKey(ED25519_PEM));
  });

  it("come from the server's cache the second time, until 10,000 others were used since", () => {
    const blanks = (i: number) => i.toString(2).padStart(14, "0").replaceAll("0", " ").replaceAll("1", "\t");
    const spelling = (i: number) => RSA_PEM.replace("\n", `${blanks(i)}\n`);
    const known = importPublicKey(P256_PEM);
    for (let i = 0; i < 9999; i++) importPublicKey(spelling(i));
    expect(importPublicKey(P256_PEM)).toBe(known);
    for (let i = 0; i < 9999; i++) importPublicKey(spelling(i));
    expect(importPublicKey(P256_PEM)).toBe(known);
    for (let i = 0; i < 10_000; i++) importPublicKey(spelling(i));
    expect(importPublicKey(P256_PEM)).not.toBe(known);
  });

  it("are one key in the cache whatever stands around the block, and are not kept with much padding", () => {
    const known = importPublicKey(P256_PEM);
    for (const text of [P256_PEM.trim(), `\n${P256_PEM}\u2003`]) expect(importPublicKey(text)).toBe(known);
    const padded = P256_PEM.padEnd(4000);
    expect(importPublicKey(padded)).toEqual(known);
    expect(importPublicKey(padded)).not.toBe(known);
  });

  it("have OpenSSL's form for as long as fewer than 1,000 others were needed since", () => {
    const known = opensslKey(P256_PEM);
    let point = p256.Point.BASE;
    const others = Array.from({ length: 1000 }, () => {
      point = point.double();
      return pem(spki(P256_ID, point.toBytes(false)));
    });
    for (const other of others.slice(1)) opensslKey(other);
    expect(opensslKey(P256_PEM)).toBe(known);
    for (const other of others) opensslKey(other);
    expect(opensslKey(P256_PEM)).not.toBe(known);
    expect(opensslKey(P256_PEM).equals(known)).toBe(true);
  });

  it("keep nothing of what they came with: neither the request nor Node's pool of buffers", () => {
    const count = 100;
    const makeKeys = (first: number) => {
      for (let i = first; i < first + count; i++) {
        const point = ed25519.getPublicKey(new Uint8Array(32).fill(i & 255, 0, 1).fill(i >> 8, 1, 2));
        // With these line ends it is kept.
        const request = `${"x".repeat(20_000)}${pem(spki(ED25519_ID, point)).replaceAll("\n", "\r\n")}`;
        importPublicKey(Buffer.from(request).toString("latin1").slice(20_000));
        Buffer.allocUnsafe(3000);
      }
    };
    makeKeys(0);
    const growths = [1, 2, 3, 4, 5].map((round) => {
      const before = heldMemory();
      makeKeys(round * count);
      return heldMemory() - before;
    });
    // Memory of kept keys grows in every round. Other growth of the process, such as compiled code, occurs only in
    // some.
    expect(Math.min(...growths) / count).toBeLessThan(5_000);
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
    ["after a public key", ED25519_PEM + pem(pkcs8, "PRIVATE KEY")],
    ["damaged", "-----BEGIN PRIVATE KEY-----"],
    ["labelled as public, PKCS #8", pem(pkcs8)],
    ["labelled as public, SEC 1", pem(sec1)],
  ])("%s: refused as such, without repeating it", (_, text) => {
    expect(verdict(text)).toBe("private-key");
    expect(() => parsePublicKey(text)).toThrow(/^This is a private key, and a public key is needed here\./);
    try {
      parsePublicKey(text);
    } catch (error) {
      expect(JSON.stringify([error, (error as Error).message])).not.toContain(text.split("\n")[1] || "BEGIN");
    }
  });
});

describe("refused keys", () => {
  it("are not looked through when they are too long for a key", () => {
    expect(verdict(`${"BEGIN".repeat(1_000_000)} PRIVATE KEY`)).toBe("invalid-key");
  });

  it.each(REFUSED_KEYS)("%s", (_, text) => expect(verdict(text)).toBe("invalid-key"));

  it("whatever a byte of the DER is changed to, both parsers agree, and OpenSSL can read what they take", () => {
    const samples = [ED25519_PEM, P256_PEM, RSA_PEM].map((text) => parsePublicKey(text).der);
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
    for (const value of [undefined, null, 1, {}, [ED25519_PEM], Buffer.from(ED25519_PEM)]) {
      expect(() => parsePublicKey(value as string)).toThrow(/must be PEM text/);
    }
  });
});
