/** The same cases for all verifiers of signatures: the portable one and the server's must never differ. */
import { generateKeyPairSync, sign, verify } from "node:crypto";
import { ed25519 } from "@noble/curves/ed25519.js";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { verifySync } from "#cairnlog/engine/crypto/keys/signatures.js";
import { importPublicKey } from "#cairnlog/engine/crypto/keys/spki.js";
import { createPool, SignatureVerifier } from "#cairnlog/engine/crypto/pool/pool.js";
import { parsePublicKey } from "#cairnlog/engine/verify/keys/publickey.js";
import { verifySignature } from "#cairnlog/engine/verify/keys/signature.js";
import { bytes, opensslKey } from "../verify/keys/keys.js";
import { edPem, messageFor, type SignatureCase, signatureCases } from "../verify/keys/signaturecases.js";
import speccheck from "./speccheck.json" with { type: "json" };

const message = messageFor((n) => Buffer.from(`cairn ${n}`));
const cases = signatureCases(message);
const called = (name: string): SignatureCase => cases.find((one) => one.name === name)!;
const good = called("Ed25519, as it should be");

/** The verdict of both verifiers, which must agree. */
async function verdict(key: string, data: Uint8Array, signature: Uint8Array): Promise<boolean> {
  const portable = await verifySignature(parsePublicKey(key), data, signature);
  expect(verifySync(importPublicKey(key), data, signature)).toBe(portable);
  return portable;
}

/** The verdict of OpenSSL, as in docs/check-receipt.sh. */
function opensslSays({ algorithm, key, signature }: Omit<SignatureCase, "name" | "says">, data = message): boolean {
  if (algorithm === "ed25519") return verify(null, data, opensslKey(key), signature);
  const isCompact = algorithm === "ecdsa-p256" && signature.length === 64;
  return verify("sha256", data, { key: opensslKey(key), dsaEncoding: isCompact ? "ieee-p1363" : "der" }, signature);
}

describe("every case", () => {
  it.each(cases.filter(({ says }) => says !== "refused-key"))("$name", async ({ key, signature, says }) => {
    expect(await verdict(key, message, signature)).toBe(says === "valid");
  });

  it.each(cases.filter(({ says }) => says === "refused-key"))("$name", ({ key }) => {
    for (const parse of [parsePublicKey, importPublicKey])
      expect(() => parse(key)).toThrow(expect.objectContaining({ code: "invalid-key" }));
  });

  it("is judged in the pool as on the calling thread", async () => {
    const pool = createPool(1);
    afterAll(() => pool.close());
    const verifier = new SignatureVerifier(pool);
    const judged = cases.filter(({ says }) => says !== "refused-key");
    // All at once: too many to be checked without the pool.
    const verdicts = await Promise.all(
      judged.map(({ key, signature }) => verifier.verify(importPublicKey(key), message, signature)),
    );
    expect(judged.filter(({ says }, i) => (says === "valid") !== verdicts[i]).map(({ name }) => name)).toEqual([]);
  });

  it("agrees with OpenSSL, except for one kind that only libsodium refuses", () => {
    const differing = cases.filter((one) => one.says !== "refused-key" && opensslSays(one) !== (one.says === "valid"));
    expect(differing.map(({ name }) => name).filter((name) => !/R of small order [0-9a-f]{64}$/.test(name))).toEqual(
      [],
    );
    expect(differing).toHaveLength(8);
  });
});

describe("Ed25519", () => {
  // RFC 8032 §7.1, tests 1 to 3.
  it.each([
    [
      "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
      "",
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ],
    [
      "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
      "72",
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ],
    [
      "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
      "af82",
      "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ],
  ])("RFC 8032 vector for %s", async (publicKey, data, signature) => {
    expect(await verdict(edPem(bytes(publicKey)), bytes(data), bytes(signature))).toBe(true);
    expect(verify(null, bytes(data), opensslKey(edPem(bytes(publicKey))), bytes(signature))).toBe(true);
    expect(await verdict(edPem(bytes(publicKey)), bytes(`${data}00`), bytes(signature))).toBe(false);
  });

  // By the rules of verifySignature (no cofactor, canonical, no small order). The published vectors of the twelve kinds
  // in "Taming the many EdDSAs" (Chalkias, Garillot, Nikolaenko, SSR 2020), table 5.
  it.each(speccheck)("speccheck $kind", async ({ message: data, pub_key, signature, says }) => {
    const key = edPem(bytes(pub_key));
    if (says === "refused-key") {
      for (const parse of [parsePublicKey, importPublicKey])
        expect(() => parse(key)).toThrow(expect.objectContaining({ code: "invalid-key" }));
    } else expect(await verdict(key, bytes(data), bytes(signature))).toBe(says === "valid");
  });

  it("the equation with cofactor, which we do not use, accepts more", () => {
    const { key, signature } = called("Ed25519, R with a small-order part, which the equation with cofactor takes");
    const point = parsePublicKey(key).der.subarray(-32);
    expect(ed25519.verify(signature, message, point)).toBe(true);
  });

  it("refuses every flipped bit", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(511), async (bit) => {
        const flipped = Buffer.from(good.signature);
        flipped[bit >> 3]! ^= 1 << (bit & 7);
        expect(await verdict(good.key, message, flipped)).toBe(false);
      }),
      { numRuns: 60, seed: 7 },
    );
  });

  it("reads messages and signatures in shared memory and at any offset", async () => {
    const shared = (data: Uint8Array) => {
      const view = new Uint8Array(new SharedArrayBuffer(data.length + 3), 3);
      view.set(data);
      return view;
    };
    const { key, signature } = good;
    expect(await verdict(key, shared(message), shared(signature))).toBe(true);
    expect(await verdict(key, shared(message), shared(signature.toReversed()))).toBe(false);
    const behind = (data: Uint8Array) => Buffer.concat([Buffer.alloc(5), data]).subarray(5);
    expect(await verdict(key, behind(message), behind(signature))).toBe(true);
  });
});

describe("ECDSA P-256", () => {
  const p1363 = cases.filter(({ algorithm, signature }) => algorithm === "ecdsa-p256" && signature.length === 64);

  it.each(p1363)("WebCrypto says the same of $name", async ({ key, signature, says }) => {
    const algorithm = { name: "ECDSA", namedCurve: "P-256" };
    const der = new Uint8Array(parsePublicKey(key).der);
    const subtleKey = await crypto.subtle.importKey("spki", der, algorithm, false, ["verify"]);
    const verification = { name: "ECDSA", hash: "SHA-256" };
    const subtle = await crypto.subtle.verify(
      verification,
      subtleKey,
      new Uint8Array(signature),
      new Uint8Array(message),
    );
    expect(subtle).toBe(says === "valid");
  });

  it("agrees about every change of a genuine signature", async () => {
    const { key, signature } = called("P-256, DER");
    await fc.assert(
      fc.asyncProperty(fc.nat(signature.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
        const changed = Buffer.from(signature);
        changed[at]! ^= flip;
        expect(await verdict(key, message, changed)).toBe(false);
      }),
      { numRuns: 60, seed: 7 },
    );
  });

  it("accepts signatures of node and the browser", async () => {
    const pair = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    const text = pair.publicKey.export({ type: "spki", format: "pem" }) as string;
    for (let i = 0; i < 20; i++) {
      expect(await verdict(text, message, sign("sha256", message, pair.privateKey))).toBe(true);
      expect(
        await verdict(text, message, sign("sha256", message, { key: pair.privateKey, dsaEncoding: "ieee-p1363" })),
      ).toBe(true);
    }
    expect(await verdict(text, message, sign("sha384", message, pair.privateKey))).toBe(false);
  });
});

describe("RSA", () => {
  it("refuses another message, key or flipped bit", async () => {
    const { key, signature } = called("RSA, PKCS #1 v1.5 with SHA-256");
    expect(await verdict(key, Buffer.from("cairns"), signature)).toBe(false);
    const { publicKey: other } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    expect(await verdict(other.export({ type: "spki", format: "pem" }) as string, message, signature)).toBe(false);
    for (const at of [0, 100, 255])
      expect(await verdict(key, message, signature.with(at, signature[at]! ^ 1))).toBe(false);
  });
});
