/**
 * Signatures that every verifier must judge in the same way: the service, the engine, the offline verifier, and
 * docs/check-receipt.sh. The caller chooses the message, because the service accepts only signatures over manifests.
 * Made with node:crypto, or by plain arithmetic if no library can make them.
 */
import { constants, createHash, generateKeyPairSync, type KeyObject, privateEncrypt, sign } from "node:crypto";
import { ed25519 } from "@noble/curves/ed25519.js";
import { p256 } from "@noble/curves/nist.js";
import { SMALL_ORDER, SMALL_ORDER_RESPELLED } from "./keycases.js";
import {
  bigEndian,
  bytes,
  ED25519_ID,
  ED25519_ORDER,
  fromLittleEndian,
  integer,
  littleEndian,
  P256_ID,
  P256_ORDER,
  pem,
  RSA_ID,
  rsaKey,
  sha256,
  spki,
  tlv,
} from "./keys.js";

export interface SignatureCase {
  readonly name: string;
  readonly algorithm: "ed25519" | "ecdsa-p256" | "rsa-2048";
  /** PEM. */
  readonly key: string;
  readonly signature: Uint8Array;
  /** `refused-key`: the signature's equation is true, but the key is not allowed. */
  readonly says: "valid" | "invalid" | "refused-key";
}

/** All cases for `message`, which must have an RSA signature that begins with a zero byte: see `messageFor`. */
export const signatureCases = (message: Uint8Array): readonly SignatureCase[] => [
  ...ed25519Cases(message),
  ...p256Cases(message),
  ...rsaCases(message),
  ...refusedKeys(message),
];

const rsaPair = generateKeyPairSync("rsa", { modulusLength: 2048 });

/** The first message of `make(0)`, `make(1)`, … whose RSA signature here begins with a zero byte. */
export function messageFor(make: (n: number) => Uint8Array): Uint8Array {
  for (let n = 0; ; n++) {
    const message = make(n);
    if (sign("sha256", message, rsaPair.privateKey)[0] === 0) return message;
  }
}

// Ed25519, RFC 8032 §5.1

const seed = new Uint8Array(32).fill(7);
const { scalar, prefix } = ed25519.utils.getExtendedPublicKey(seed);
const point = ed25519.getPublicKey(seed);
const torsion = ed25519.Point.fromBytes(bytes("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"));
const multiple = (log: bigint) => ed25519.Point.BASE.multiply(log);
export const edPem = (encoded: Uint8Array): string => pem(spki(ED25519_ID, encoded));

/**
 * k of RFC 8032 §5.1.7. `domain` is the prefix that other variants than the plain one put before R, A and the message.
 */
const challenge = (r: Uint8Array, a: Uint8Array, message: Uint8Array, domain: Uint8Array = Buffer.alloc(0)) =>
  fromLittleEndian(createHash("sha512").update(domain).update(r).update(a).update(message).digest()) % ED25519_ORDER;

function ed25519Cases(message: Uint8Array): SignatureCase[] {
  const good = Buffer.from(ed25519.sign(message, seed));
  const R = good.subarray(0, 32);
  const S = good.subarray(32);
  const s = fromLittleEndian(S);
  /** A signature by the key's holder with a chosen R; `log` is its discrete logarithm up to torsion. */
  const forged = (r: Uint8Array, log: bigint, hashed: Uint8Array = r) =>
    Buffer.concat([r, littleEndian((log + challenge(hashed, point, message) * scalar) % ED25519_ORDER)]);
  const withS = (value: bigint) => Buffer.concat([R, littleEndian(value)]);
  const log = fromLittleEndian(prefix) % ED25519_ORDER;
  const mixedR = multiple(log).add(torsion).toBytes();
  const prehashed = createHash("sha512").update(message).digest();
  const dom2 = (flag: number) =>
    Buffer.concat([Buffer.from("SigEd25519 no Ed25519 collisions"), Buffer.from([flag, 0])]);
  const instance = (flag: number, data: Uint8Array) =>
    Buffer.concat([R, littleEndian((log + challenge(R, point, data, dom2(flag)) * scalar) % ED25519_ORDER)]);

  const underGood: readonly (readonly [name: string, signature: Uint8Array, valid: boolean])[] = [
    ["as it should be", good, true],
    ["with another R", forged(multiple(5n).toBytes(), 5n), true],
    ["empty", Buffer.alloc(0), false],
    ["truncated", good.subarray(0, 63), false],
    ["R alone", R, false],
    ["one byte longer", Buffer.concat([good, Buffer.alloc(1)]), false],
    ["twice", Buffer.concat([good, good]), false],
    ["all zero", Buffer.alloc(64), false],
    ["all ones", Buffer.alloc(64, 0xff), false],
    ["S = 0", withS(0n), false],
    ["S + L", withS(s + ED25519_ORDER), false],
    ["S + 8L", withS(s + 8n * ED25519_ORDER), false],
    ["S + 15L", withS((s + 15n * ED25519_ORDER) % 2n ** 256n), false],
    ["S = L", withS(ED25519_ORDER), false],
    ["top bit of S", withS(s + 2n ** 255n), false],
    ["−S", withS(ED25519_ORDER - s), false],
    ["−R", Buffer.concat([R.subarray(0, 31), Buffer.from([R[31]! ^ 0x80]), S]), false],
    ["R and S swapped", Buffer.concat([S, R]), false],
    ["R off the curve", Buffer.concat([bytes(`02${"00".repeat(31)}`), S]), false],
    ["R not canonical", Buffer.concat([bytes(`f0${"ff".repeat(30)}7f`), S]), false],
    ["R with a small-order part, which the equation with cofactor takes", forged(mixedR, log), false],
    ["Ed25519ph", instance(1, prehashed), false],
    ["Ed25519ctx", instance(0, message), false],
    ["another's", Buffer.from(ed25519.sign(message, new Uint8Array(32).fill(8))), false],
    // Only the key's holder can make these. Of the first eight, only the first is valid without cofactor, and all with
    // it.
    ...SMALL_ORDER.map((hex) => [`R of small order ${hex}`, forged(bytes(hex), 0n), false] as const),
    ...SMALL_ORDER_RESPELLED.flatMap((hex) => {
      const canonical = ed25519.Point.fromBytes(bytes(hex), true).toBytes();
      return [
        [`R of small order, respelled ${hex}`, forged(bytes(hex), 0n), false],
        [`R of small order, respelled but for the hash ${hex}`, forged(bytes(hex), 0n, canonical), false],
      ] as const;
    }),
  ];

  // For a key with a small-order part. Without cofactor, it is valid only if k is a multiple of 8.
  const mixed = ed25519.Point.fromBytes(point).add(torsion).toBytes();
  const k = (r: Uint8Array) => challenge(r, mixed, message);
  const honest = (one: bigint) => {
    const r = multiple(one).toBytes();
    return { r, isValid: k(r) % 8n === 0n };
  };
  const both = (one: bigint) => {
    const r = multiple(one).add(torsion).toBytes();
    return { r, isValid: (k(r) + 1n) % 8n === 0n };
  };
  const underMixed = ([what, made]: readonly [string, typeof honest]) =>
    [true, false].map((valid): SignatureCase => {
      // One in eight is valid. The key is another in each run, so there is no number of tries that suffices.
      let one = 1n;
      while (made(one).isValid !== valid) one++;
      const { r } = made(one);
      const signature = Buffer.concat([r, littleEndian((one + k(r) * scalar) % ED25519_ORDER)]);
      const holds = valid ? "holds" : "holds with cofactor only";
      return {
        name: `Ed25519, key ${what} with a small-order part: ${holds}`,
        algorithm: "ed25519",
        key: edPem(mixed),
        signature,
        says: valid ? "valid" : "invalid",
      };
    });

  // [S]B = R + [k]A even though R and A have small-order parts, because these cancel out. Keys are tried until they do.
  const cancelling = SMALL_ORDER.slice(1).map((hex): SignatureCase => {
    const r = bytes(hex);
    for (let secret = 1n; ; secret++) {
      const A = multiple(secret).add(torsion).toBytes();
      const h = challenge(r, A, message);
      const sum = ed25519.Point.fromBytes(r).add(torsion.multiplyUnsafe(h % 8n));
      if (!sum.is0()) continue;
      const signature = Buffer.concat([r, littleEndian((h * secret) % ED25519_ORDER)]);
      const name = `Ed25519, holds, with R of small order ${hex}`;
      return { name, algorithm: "ed25519", key: edPem(A), signature, says: "invalid" };
    }
  });

  return [
    ...cancelling,
    ...underGood.map(
      ([name, signature, valid]): SignatureCase => ({
        name: `Ed25519, ${name}`,
        algorithm: "ed25519",
        key: edPem(point),
        signature,
        says: valid ? "valid" : "invalid",
      }),
    ),
    ...(
      [
        ["", honest],
        ["and R", both],
      ] as const
    ).flatMap(underMixed),
  ];
}

// ECDSA on P-256, FIPS 186-5 §6.4

function p256Cases(message: Uint8Array): SignatureCase[] {
  const secret = new Uint8Array(32).fill(9);
  const key = pem(spki(P256_ID, p256.getPublicKey(secret, false)));
  const low = p256.sign(message, secret, { lowS: true });
  const R = Buffer.from(low.subarray(0, 32));
  const S = Buffer.from(low.subarray(32));
  const r = BigInt(`0x${R.toString("hex")}`);
  const s = BigInt(`0x${S.toString("hex")}`);
  const n = P256_ORDER;
  const compact = (a: bigint, b: bigint) => Buffer.concat([bigEndian(a), bigEndian(b)]);
  const der = (a: bigint, b: bigint) => tlv(0x30, integer(a), integer(b));
  const raw = (a: Uint8Array, b: Uint8Array) => tlv(0x30, tlv(0x02, a), tlv(0x02, b));
  const pad = (value: Uint8Array, zeros: number) => Buffer.concat([Buffer.alloc(zeros), value]);
  const [minimalR, minimalS] = [integer(r).subarray(2), integer(s).subarray(2)];
  const genuine = der(r, s);

  const cases: readonly (readonly [name: string, signature: Uint8Array, valid: boolean])[] = [
    ["P1363", compact(r, s), true],
    ["P1363, high S", compact(r, n - s), true],
    ["P1363, r = 0", compact(0n, s), false],
    ["P1363, s = 0", compact(r, 0n), false],
    ["P1363, all zero", compact(0n, 0n), false],
    ["P1363, r = n", compact(n, s), false],
    ["P1363, s = n", compact(r, n), false],
    ["P1363, r and s = n", compact(n, n), false],
    ["P1363, s + n", compact(r, (s + n) % 2n ** 256n), false],
    ["P1363, −r", compact(n - r, s), false],
    ["P1363, swapped", compact(s, r), false],
    ["P1363, all ones", Buffer.alloc(64, 0xff), false],
    ["P1363 within DER", tlv(0x04, compact(r, s)), false],
    ["P1363 twice", Buffer.concat([compact(r, s), compact(r, s)]), false],
    ["DER", genuine, true],
    ["DER, high S", der(r, n - s), true],
    ["empty", Buffer.alloc(0), false],
    ["63 bytes", compact(r, s).subarray(1), false],
    ["65 bytes", pad(compact(r, s), 1), false],
    ["DER, r = 0", der(0n, s), false],
    ["DER, s = 0", der(r, 0n), false],
    ["DER, r and s = 0", der(0n, 0n), false],
    ["DER, r = n", der(n, s), false],
    ["DER, r + n", der(r + n, s), false],
    ["DER, s + n", der(r, s + n), false],
    ["DER, s of 33 bytes", der(r, s + (n << 8n)), false],
    ["DER, s of 200 bytes", der(r, s + (n << 1344n)), false],
    ["DER, swapped", der(s, r), false],
    ["DER, leading zero too many in r", raw(pad(minimalR, 1), minimalS), false],
    ["DER, leading zeros too many in s", raw(minimalR, pad(S, 2)), false],
    ["DER, negative r", raw(bigEndian(2n ** 256n - r), minimalS), false],
    ["DER, top bit without zero byte", raw(bigEndian(r | (1n << 255n)), minimalS), false],
    ["DER, empty INTEGER", raw(Buffer.alloc(0), minimalS), false],
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
    ["DER, tag in its long form", Buffer.concat([bytes("3f30"), genuine.subarray(1)]), false],
    ["a lone tag", Buffer.from([0x30]), false],
    ["a length of four bytes", bytes("3084ffffffff"), false],
    ["over SHA-384", Buffer.from(sign("sha384", message, ecKey(secret, key))), false],
  ];
  const twoForms = shortSignature(message);
  return [
    ...cases.map(
      ([name, signature, valid]): SignatureCase => ({
        name: `P-256, ${name}`,
        algorithm: "ecdsa-p256",
        key,
        signature,
        says: valid ? "valid" : "invalid",
      }),
    ),
    { name: "P-256, P1363 with a short s", algorithm: "ecdsa-p256", ...twoForms, says: "valid" },
    // 64 bytes are always read as IEEE P1363.
    {
      name: "P-256, DER of 64 bytes",
      algorithm: "ecdsa-p256",
      key: twoForms.key,
      signature: twoForms.der,
      says: "invalid",
    },
  ];
}

const ecKey = (secret: Uint8Array, key: string) => {
  const jwkPoint = Buffer.from(key.split("-----")[2]!, "base64").subarray(-64);
  const [x, y] = [jwkPoint.subarray(0, 32), jwkPoint.subarray(32)].map((part) => part.toString("base64url"));
  const d = Buffer.from(secret).toString("base64url");
  return { key: { kty: "EC", crv: "P-256", d, x: x!, y: y! }, format: "jwk" } as const;
};

/** A signature with an s of 25 bytes, so that its DER has 64 bytes. The key is made for it. */
function shortSignature(message: Uint8Array): { key: string; signature: Buffer; der: Buffer } {
  const n = P256_ORDER;
  const z = BigInt(`0x${sha256(message)}`) % n;
  const s = 0x7eadbeefn << 168n;
  for (let nonce = 1n; ; nonce++) {
    const r = p256.Point.BASE.multiply(nonce).toAffine().x % n;
    const der = tlv(0x30, integer(r), integer(s));
    if (der.length !== 64) continue;
    const inverse = p256.Point.Fn.inv(r);
    const d = ((((s * nonce - z) % n) + n) * inverse) % n;
    const key = pem(spki(P256_ID, p256.getPublicKey(bigEndian(d), false)));
    return { key, signature: Buffer.concat([bigEndian(r), bigEndian(s)]), der };
  }
}

// RSASSA-PKCS1-v1_5, RFC 8017 §8.2

const SHA256_ID = bytes("300d06096086480165030402010500");
const publicPem = (key: KeyObject): string => key.export({ type: "spki", format: "pem" }) as string;
const digestInfo = (message: Uint8Array) => tlv(0x30, SHA256_ID, tlv(0x04, bytes(sha256(message))));

/** EM of RFC 8017 §9.2 with this tail, with the length of the modulus. */
function encoded(length: number, ...tail: Uint8Array[]): Buffer {
  const end = Buffer.concat(tail);
  return Buffer.concat([bytes("0001"), Buffer.alloc(length - 3 - end.length, 0xff), bytes("00"), end]);
}

function rsaCases(message: Uint8Array): SignatureCase[] {
  const { publicKey, privateKey } = rsaPair;
  const good = sign("sha256", message, privateKey);
  const modulus = numberOf(publicKey, "n");
  const value = BigInt(`0x${good.toString("hex")}`);
  /** A signature over a chosen encoded message. */
  const raw = (block: Uint8Array) => privateEncrypt({ key: privateKey, padding: constants.RSA_NO_PADDING }, block);
  const tail = (...parts: Uint8Array[]) => raw(encoded(256, ...parts));
  const info = digestInfo(message);
  const hash = bytes(sha256(message));
  const head = Buffer.concat([bytes("0001"), Buffer.alloc(8, 0xff), bytes("00")]);
  const padding = (first: string, fill: number) =>
    Buffer.concat([bytes(first), Buffer.alloc(256 - first.length / 2 - 1 - info.length, fill), bytes("00"), info]);
  const pss = (saltLength: number) =>
    sign("sha256", message, { key: privateKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength });
  const cases: readonly (readonly [name: string, signature: Uint8Array, valid: boolean])[] = [
    ["PKCS #1 v1.5 with SHA-256", good, true],
    ["encoded by hand", tail(info), true],
    ["empty", Buffer.alloc(0), false],
    ["truncated", good.subarray(0, -1), false],
    ["without its leading zero byte", good.subarray(1), false],
    ["one byte longer", Buffer.concat([Buffer.alloc(1), good]), false],
    ["a byte behind", Buffer.concat([good, Buffer.alloc(1)]), false],
    ["plus the modulus", bigEndian((value + modulus) % 2n ** 2048n, 256), false],
    ["minus itself", bigEndian(modulus - value, 256), false],
    ["the modulus", bigEndian(modulus, 256), false],
    ["zero", Buffer.alloc(256), false],
    ["one", Buffer.concat([Buffer.alloc(255), Buffer.from([1])]), false],
    ["all ones", Buffer.alloc(256, 0xff), false],
    ["SHA-1", sign("sha1", message, privateKey), false],
    ["SHA-512", sign("sha512", message, privateKey), false],
    ["PSS, salt of 0", pss(0), false],
    ["PSS, salt of 20", pss(20), false],
    ["PSS, salt of 32", pss(32), false],
    ["PSS, longest salt", pss(constants.RSA_PSS_SALTLEN_MAX_SIGN), false],
    [
      "padding cut short, garbage behind",
      raw(Buffer.concat([head, info, Buffer.alloc(256 - head.length - info.length)])),
      false,
    ],
    ["padding cut short, garbage in a parameter", tailInParameter(head, hash, raw), false],
    ["hash without DigestInfo", tail(hash), false],
    ["algorithm without its NULL", tail(tlv(0x30, bytes("300b0609608648016503040201"), tlv(0x04, hash))), false],
    [
      "another parameter than NULL",
      tail(tlv(0x30, bytes("300f060960864801650304020104020000"), tlv(0x04, hash))),
      false,
    ],
    ["long-form length in DigestInfo", tail(bytes("308131"), info.subarray(2)), false],
    ["indefinite length in DigestInfo", tail(bytes("3080"), info.subarray(2), bytes("0000")), false],
    ["SHA-512's name on SHA-256", tail(tlv(0x30, bytes("300d06096086480165030402030500"), tlv(0x04, hash))), false],
    ["bytes behind the DigestInfo", tail(info, bytes("00")), false],
    ["bytes before the DigestInfo", tail(bytes("0500"), info), false],
    ["block type 0", raw(padding("0000", 0)), false],
    ["block type 2", raw(padding("0002", 0xff)), false],
    ["zero in the padding", raw(padding("0001ff00", 0xff)), false],
    ["other padding than ff", raw(padding("0001", 0xfe)), false],
  ];
  return cases.map(
    ([name, signature, valid]): SignatureCase => ({
      name: `RSA, ${name}`,
      algorithm: "rsa-2048",
      key: publicPem(publicKey),
      signature,
      says: valid ? "valid" : "invalid",
    }),
  );
}

/** As in the forgeries of e = 3: the parameters of the algorithm use all the space. */
function tailInParameter(head: Uint8Array, hash: Uint8Array, raw: (block: Uint8Array) => Buffer): Buffer {
  const oid = bytes("0609608648016503040201");
  const digest = tlv(0x04, hash);
  // Three headers of three bytes each.
  const room = 256 - head.length - 9 - oid.length - digest.length;
  return raw(Buffer.concat([head, tlv(0x30, tlv(0x30, oid, tlv(0x04, Buffer.alloc(room, 7))), digest)]));
}

// Keys that are not allowed, each with a signature that fulfils its equation.

function refusedKeys(message: Uint8Array): SignatureCase[] {
  return [...smallOrderKeys(message), ...weakRsaKeys(message)].map((one) => ({ ...one, says: "refused-key" }));
}

type Forgery = Omit<SignatureCase, "says">;

/** [S]B = R + [k]A: if k is a multiple of 8, A vanishes, and anybody can sign. */
function smallOrderKeys(message: Uint8Array): Forgery[] {
  return [...SMALL_ORDER, ...SMALL_ORDER_RESPELLED].map((hex): Forgery => {
    for (let log = 1n; ; log++) {
      const r = multiple(log).toBytes();
      if (challenge(r, bytes(hex), message) % 8n) continue;
      const signature = Buffer.concat([r, littleEndian(log)]);
      return { name: `Ed25519, key of small order ${hex}`, algorithm: "ed25519", key: edPem(bytes(hex)), signature };
    }
  });
}

function weakRsaKeys(message: Uint8Array): Forgery[] {
  const small = generateKeyPairSync("rsa", { modulusLength: 1024 });
  const three = generateKeyPairSync("rsa", { modulusLength: 2048, publicExponent: 3 });
  const { publicKey, privateKey } = rsaPair;
  const [modulus, p, q] = [numberOf(publicKey, "n"), numberOf(privateKey, "p"), numberOf(privateKey, "q")];
  const block = encoded(256, digestInfo(message));
  const number = BigInt(`0x${block.toString("hex")}`);
  // The exponents are exchanged: the secret one is now public.
  const huge = inverseOf(65537n, (p - 1n) * (q - 1n));
  const made = (name: string, key: string, signature: Uint8Array): Forgery => ({
    name: `RSA, ${name}`,
    algorithm: "rsa-2048",
    key,
    signature,
  });
  return [
    made("1024 bits", publicPem(small.publicKey), sign("sha256", message, small.privateKey)),
    made("e = 3", publicPem(three.publicKey), sign("sha256", message, three.privateKey)),
    made("e = 1", pem(spki(RSA_ID, rsaKey(modulus, 1n))), block),
    made(
      "e as long as the modulus",
      pem(spki(RSA_ID, rsaKey(modulus, huge))),
      bigEndian(power(number, 65537n, modulus), 256),
    ),
  ];
}

function numberOf(key: KeyObject, member: "n" | "p" | "q"): bigint {
  return BigInt(`0x${Buffer.from(key.export({ format: "jwk" })[member]!, "base64url").toString("hex")}`);
}

function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let result = 1n;
  for (let bits = exponent, square = base; bits; bits >>= 1n, square = (square * square) % modulus)
    if (bits & 1n) result = (result * square) % modulus;
  return result;
}

function inverseOf(value: bigint, modulus: bigint): bigint {
  let [a, b, x, y] = [value, modulus, 1n, 0n];
  while (b) [a, b, x, y] = [b, a % b, y, x - (a / b) * y];
  return ((x % modulus) + modulus) % modulus;
}
