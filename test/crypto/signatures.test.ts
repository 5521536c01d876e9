/** One set of cases for every verifier of signatures: the portable one and the server's must never differ. */
import { constants, generateKeyPairSync, privateEncrypt, sign, verify } from "node:crypto";
import { ed25519 } from "@noble/curves/ed25519.js";
import { p256 } from "@noble/curves/nist.js";
import { sha512 } from "@noble/hashes/sha2.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { verifySync } from "#cairnlog/engine/crypto/signatures.js";
import { importPublicKey } from "#cairnlog/engine/crypto/spki.js";
import { parsePublicKey } from "#cairnlog/engine/verify/publickey.js";
import { verifySignature } from "#cairnlog/engine/verify/signature.js";
import {
  bigEndian,
  bytes,
  ED25519_ID,
  ED25519_ORDER,
  fromLittleEndian,
  integer,
  littleEndian,
  opensslKey,
  P256_ID,
  P256_ORDER,
  pem,
  sha256,
  spki,
  tlv,
} from "../verify/keys.js";

/** What both verifiers say of a signature, which must be the same. */
async function verdict(key: string, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  const portable = await verifySignature(parsePublicKey(key), message, signature);
  expect(verifySync(importPublicKey(key), message, signature)).toBe(portable);
  return portable;
}

const message = Buffer.from("cairn");
const edPem = (point: Uint8Array) => pem(spki(ED25519_ID, point));

describe("Ed25519", () => {
  const opensslSays = (key: string, data: Uint8Array, signature: Uint8Array) =>
    verify(null, data, opensslKey(key), signature);
  const seed = new Uint8Array(32).fill(7);
  const { scalar, prefix } = ed25519.utils.getExtendedPublicKey(seed);
  const point = ed25519.getPublicKey(seed);
  const key = edPem(point);
  const good = Buffer.from(ed25519.sign(message, seed));
  const R = good.subarray(0, 32);
  const S = good.subarray(32);
  const torsion = ed25519.Point.fromBytes(bytes("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"));
  const challenge = (r: Uint8Array) => fromLittleEndian(sha512(Buffer.concat([r, point, message]))) % ED25519_ORDER;
  /** A signature by the key's holder with an R of his choice, r being its discrete logarithm up to torsion. */
  const forged = (r: Uint8Array, log: bigint) =>
    Buffer.concat([r, littleEndian((log + challenge(r) * scalar) % ED25519_ORDER)]);

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
    expect(opensslSays(edPem(bytes(publicKey)), bytes(data), bytes(signature))).toBe(true);
    expect(await verdict(edPem(bytes(publicKey)), bytes(`${data}00`), bytes(signature))).toBe(false);
  });

  it.each([
    ["as it should be", good, true],
    ["empty", Buffer.alloc(0), false],
    ["truncated", good.subarray(0, 63), false],
    ["R alone", R, false],
    ["one byte longer", Buffer.concat([good, Buffer.alloc(1)]), false],
    ["twice", Buffer.concat([good, good]), false],
    ["all zero", Buffer.alloc(64), false],
    ["all ones", Buffer.alloc(64, 0xff), false],
    ["S = 0", Buffer.concat([R, Buffer.alloc(32)]), false],
    ["S + L", Buffer.concat([R, littleEndian(fromLittleEndian(S) + ED25519_ORDER)]), false],
    ["S + 8L", Buffer.concat([R, littleEndian(fromLittleEndian(S) + 8n * ED25519_ORDER)]), false],
    ["S = L", Buffer.concat([R, littleEndian(ED25519_ORDER)]), false],
    ["top bit of S", Buffer.concat([R, littleEndian(fromLittleEndian(S) + 2n ** 255n)]), false],
    ["−S", Buffer.concat([R, littleEndian(ED25519_ORDER - fromLittleEndian(S))]), false],
    ["−R", Buffer.concat([R.subarray(0, 31), Buffer.from([R[31]! ^ 0x80]), S]), false],
    ["R and S swapped", Buffer.concat([S, R]), false],
    ["R off the curve", Buffer.concat([bytes(`02${"00".repeat(31)}`), S]), false],
    ["R not canonical", Buffer.concat([bytes(`f0${"ff".repeat(30)}7f`), S]), false],
    ["R zero, S zero", forged(bytes(`01${"00".repeat(30)}80`), 0n), false],
  ])("%s", async (_, signature, valid) => {
    expect(await verdict(key, message, signature)).toBe(valid);
    expect(opensslSays(key, message, signature)).toBe(valid);
  });

  it("refuses an R of small order, which only the key's holder can make", async () => {
    for (let i = 0; i < 8; i++) {
      const r = ed25519.Point.ZERO.add(i === 0 ? ed25519.Point.ZERO : torsion.multiplyUnsafe(BigInt(i))).toBytes();
      expect(await verdict(key, message, forged(r, 0n))).toBe(false);
    }
  });

  it("refuses an R with a small-order part, which only the equation with cofactor would take", async () => {
    const log = fromLittleEndian(prefix) % ED25519_ORDER;
    const r = ed25519.Point.BASE.multiplyUnsafe(log).add(torsion).toBytes();
    expect(await verdict(key, message, forged(r, log))).toBe(false);
    expect(opensslSays(key, message, forged(r, log))).toBe(false);
    expect(ed25519.verify(forged(r, log), message, point)).toBe(true);
  });

  it("judges signatures under a key with a small-order part alike", async () => {
    const mixed = ed25519.Point.fromBytes(point).add(torsion).toBytes();
    const said = new Set<boolean>();
    for (let log = 1n; log <= 24n; log++) {
      const r = ed25519.Point.BASE.multiply(log).toBytes();
      const k = fromLittleEndian(sha512(Buffer.concat([r, mixed, message]))) % ED25519_ORDER;
      const signature = Buffer.concat([r, littleEndian((log + k * scalar) % ED25519_ORDER)]);
      // Without cofactor it holds only where k is a multiple of 8.
      expect(await verdict(edPem(mixed), message, signature)).toBe(k % 8n === 0n);
      expect(opensslSays(edPem(mixed), message, signature)).toBe(k % 8n === 0n);
      said.add(k % 8n === 0n);
    }
    expect(said.size).toBe(2);
  });

  it("refuses every flipped bit", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(511), async (bit) => {
        const flipped = Buffer.from(good);
        flipped[bit >> 3]! ^= 1 << (bit & 7);
        expect(await verdict(key, message, flipped)).toBe(false);
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
    expect(await verdict(key, shared(message), shared(good))).toBe(true);
    expect(await verdict(key, shared(message), shared(good.toReversed()))).toBe(false);
    expect(
      await verdict(key, Buffer.concat([message, message]).subarray(5), Buffer.concat([R, good]).subarray(32)),
    ).toBe(true);
  });
});

describe("ECDSA P-256", () => {
  const secret = new Uint8Array(32).fill(9);
  const key = pem(spki(P256_ID, p256.getPublicKey(secret, false)));
  const low = p256.sign(message, secret, { lowS: true });
  const r = BigInt(`0x${Buffer.from(low.subarray(0, 32)).toString("hex")}`);
  const s = BigInt(`0x${Buffer.from(low.subarray(32)).toString("hex")}`);
  const n = P256_ORDER;
  const compact = (a: bigint, b: bigint) => Buffer.concat([bigEndian(a), bigEndian(b)]);
  const der = (a: bigint, b: bigint) => tlv(0x30, integer(a), integer(b));
  const raw = (a: Uint8Array, b: Uint8Array) => tlv(0x30, tlv(0x02, a), tlv(0x02, b));

  it.each([
    ["P1363", compact(r, s), true],
    ["P1363, high S", compact(r, n - s), true],
    ["P1363, r = 0", compact(0n, s), false],
    ["P1363, s = 0", compact(r, 0n), false],
    ["P1363, all zero", compact(0n, 0n), false],
    ["P1363, r = n", compact(n, s), false],
    ["P1363, s = n", compact(r, n), false],
    ["P1363, s + n", compact(r, (s + n) % 2n ** 256n), false],
    ["P1363, −r", compact(n - r, s), false],
    ["P1363, swapped", compact(s, r), false],
    ["P1363, all ones", Buffer.alloc(64, 0xff), false],
  ])("%s", async (_, signature, valid) => {
    expect(await verdict(key, message, signature)).toBe(valid);
    expect(verify("sha256", message, { key: opensslKey(key), dsaEncoding: "ieee-p1363" }, signature)).toBe(valid);
    const subtleKey = await crypto.subtle.importKey(
      "spki",
      new Uint8Array(parsePublicKey(key).der),
      { name: "ECDSA", namedCurve: "P-256" },
      false,
      ["verify"],
    );
    const subtle = await crypto.subtle.verify(
      { name: "ECDSA", hash: "SHA-256" },
      subtleKey,
      new Uint8Array(signature),
      message,
    );
    expect(subtle).toBe(valid);
  });

  const R = bigEndian(r);
  const S = bigEndian(s);
  const pad = (value: Uint8Array, zeros: number) => Buffer.concat([Buffer.alloc(zeros), value]);
  const minimal = integer(r).subarray(2);
  const genuine = der(r, s);

  it.each([
    ["DER", genuine, true],
    ["DER, high S", der(r, n - s), true],
    ["empty", Buffer.alloc(0), false],
    ["63 bytes", compact(r, s).subarray(1), false],
    ["65 bytes", pad(compact(r, s), 1), false],
    ["DER, r = 0", der(0n, s), false],
    ["DER, s = 0", der(r, 0n), false],
    ["DER, r = n", der(n, s), false],
    ["DER, r + n", der(r + n, s), false],
    ["DER, s + n", der(r, s + n), false],
    ["DER, s of 33 bytes", der(r, s + (n << 8n)), false],
    ["DER, swapped", der(s, r), false],
    ["DER, leading zero too many in r", raw(pad(minimal, 1), integer(s).subarray(2)), false],
    ["DER, leading zeros too many in s", raw(minimal, pad(S, 2)), false],
    ["DER, negative r", raw(bigEndian(2n ** 256n - r), integer(s).subarray(2)), false],
    ["DER, top bit without zero byte", raw(bigEndian(r | (1n << 255n)), integer(s).subarray(2)), false],
    ["DER, empty INTEGER", raw(Buffer.alloc(0), integer(s).subarray(2)), false],
    ["DER, bytes behind", Buffer.concat([genuine, Buffer.from([0])]), false],
    ["DER, bytes inside", tlv(0x30, integer(r), integer(s), Buffer.from([5, 0])), false],
    ["DER, one INTEGER", tlv(0x30, integer(r)), false],
    ["DER, long-form length", Buffer.concat([bytes("3081"), genuine.subarray(1)]), false],
    ["DER, longer-form length", Buffer.concat([bytes("308200"), genuine.subarray(1)]), false],
    ["DER, long-form INTEGER", tlv(0x30, bytes("0281"), integer(r).subarray(1), integer(s)), false],
    ["DER, indefinite length", Buffer.concat([bytes("3080"), genuine.subarray(2), bytes("0000")]), false],
    ["DER, truncated", genuine.subarray(0, -1), false],
    ["DER, length too long", Buffer.concat([Buffer.from([0x30, genuine.length - 1]), genuine.subarray(2)]), false],
    ["DER, SET for SEQUENCE", Buffer.concat([Buffer.from([0x31]), genuine.subarray(1)]), false],
    ["DER, OCTET STRING for INTEGER", tlv(0x30, tlv(0x04, R), integer(s)), false],
    ["a lone tag", Buffer.from([0x30]), false],
    ["a length of four bytes", bytes("3084ffffffff"), false],
  ])("%s", async (_, signature, valid) => expect(await verdict(key, message, signature)).toBe(valid));

  it("says the same of whatever is made of a genuine signature", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(genuine.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
        const changed = Buffer.from(genuine);
        changed[at]! ^= flip;
        expect(await verdict(key, message, changed)).toBe(false);
      }),
      { numRuns: 60, seed: 7 },
    );
  });

  it("takes what node and the browser make", async () => {
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
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = publicKey.export({ type: "spki", format: "pem" }) as string;
  const good = sign("sha256", message, privateKey);
  const modulus = BigInt(`0x${Buffer.from(publicKey.export({ format: "jwk" }).n!, "base64url").toString("hex")}`);
  const hash = bytes(sha256(message));
  const SHA256_ID = bytes("300d06096086480165030402010500");
  /** A signature over an encoded message of our own making (RFC 8017 §9.2). */
  const encoded = (...parts: Uint8Array[]) => {
    const tail = Buffer.concat(parts);
    const block = Buffer.concat([bytes("0001"), Buffer.alloc(256 - 3 - tail.length, 0xff), bytes("00"), tail]);
    return privateEncrypt({ key: privateKey, padding: constants.RSA_NO_PADDING }, block);
  };
  const shortPadding = (...parts: Uint8Array[]) => {
    const head = Buffer.concat([bytes("0001"), Buffer.alloc(8, 0xff), bytes("00"), ...parts]);
    return privateEncrypt(
      { key: privateKey, padding: constants.RSA_NO_PADDING },
      Buffer.concat([head, Buffer.alloc(256 - head.length)]),
    );
  };
  const digestInfo = tlv(0x30, SHA256_ID, tlv(0x04, hash));

  it.each([
    ["PKCS #1 v1.5 with SHA-256", good, true],
    ["encoded by hand", encoded(digestInfo), true],
    ["empty", Buffer.alloc(0), false],
    ["truncated", good.subarray(0, -1), false],
    ["one byte longer", Buffer.concat([Buffer.alloc(1), good]), false],
    ["plus the modulus", bigEndian((BigInt(`0x${good.toString("hex")}`) + modulus) % 2n ** 2048n, 256), false],
    ["zero", Buffer.alloc(256), false],
    ["one", Buffer.concat([Buffer.alloc(255), Buffer.from([1])]), false],
    ["SHA-1", sign("sha1", message, privateKey), false],
    ["SHA-512", sign("sha512", message, privateKey), false],
    ["PSS", sign("sha256", message, { key: privateKey, padding: constants.RSA_PKCS1_PSS_PADDING }), false],
    ["padding cut short, garbage behind", shortPadding(digestInfo), false],
    ["hash without DigestInfo", encoded(hash), false],
    [
      "parameters other than NULL",
      encoded(tlv(0x30, bytes("300f060960864801650304020104020000"), tlv(0x04, hash))),
      false,
    ],
    ["bytes behind the DigestInfo", encoded(digestInfo, bytes("00")), false],
    [
      "block type 2",
      privateEncrypt(
        { key: privateKey, padding: constants.RSA_NO_PADDING },
        Buffer.concat([bytes("0002"), Buffer.alloc(256 - 3 - digestInfo.length, 0xff), bytes("00"), digestInfo]),
      ),
      false,
    ],
    [
      "zero in the padding",
      privateEncrypt(
        { key: privateKey, padding: constants.RSA_NO_PADDING },
        Buffer.concat([bytes("0001ff00"), Buffer.alloc(256 - 5 - digestInfo.length, 0xff), bytes("00"), digestInfo]),
      ),
      false,
    ],
  ])("%s", async (_, signature, valid) => expect(await verdict(key, message, signature)).toBe(valid));

  it("refuses another message, key or flipped bit", async () => {
    expect(await verdict(key, Buffer.from("cairns"), good)).toBe(false);
    const other = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({
      type: "spki",
      format: "pem",
    }) as string;
    expect(await verdict(other, message, good)).toBe(false);
    for (const at of [0, 100, 255]) expect(await verdict(key, message, good.with(at, good[at]! ^ 1))).toBe(false);
  });
});
