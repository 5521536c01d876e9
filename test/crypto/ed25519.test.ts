/** Ed25519 keys read without the parser, and points checked by libsodium: both must agree with the portable code. */
import { ed25519 } from "@noble/curves/ed25519.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkPoint } from "#cairnlog/engine/crypto/keys/ed25519.js";
import { verifySync } from "#cairnlog/engine/crypto/keys/signatures.js";
import { importPublicKey, signersKey } from "#cairnlog/engine/crypto/keys/spki.js";
import { checkEd25519Point } from "#cairnlog/engine/verify/keys/publickey.js";
import {
  ACCEPTED_KEYS,
  ED25519_PEM,
  P256_PEM,
  REFUSED_KEYS,
  SMALL_ORDER,
  SMALL_ORDER_RESPELLED,
  SPELLINGS,
} from "../verify/keys/keycases.js";
import { bytes, littleEndian } from "../verify/keys/keys.js";
import { edPem, messageFor, signatureCases } from "../verify/keys/signaturecases.js";

const PRIME = 2n ** 255n - 19n;
const TORSION = SMALL_ORDER.map((hex) => ed25519.Point.fromBytes(bytes(hex)));

/** What a call gives, or the code of its error. */
function outcome<T>(call: () => T): T | string {
  try {
    return call();
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe("the check of a point by libsodium", () => {
  const expectSame = (point: Uint8Array): void => {
    const hex = Buffer.from(point).toString("hex");
    expect(
      outcome(() => checkPoint(point)),
      hex,
    ).toBe(outcome(() => checkEd25519Point(point)));
  };

  it("agrees with the portable one about any bytes", () => {
    fc.assert(fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), expectSame), { numRuns: 500 });
    for (const length of [0, 31, 33]) expectSame(new Uint8Array(length).fill(1));
  });

  it("agrees about every y at either end of its range, with both signs", () => {
    const ends = Array.from({ length: 40 }, (_, i) => BigInt(i)).flatMap((i) => [i, PRIME - 20n + i]);
    for (const y of ends.filter((value) => value < 2n ** 255n)) {
      const point = littleEndian(y);
      expectSame(point);
      point[31]! |= 0x80;
      expectSame(point);
    }
  });

  it("agrees about points of small order, respelled ones, and sums of one of them and another point", () => {
    for (const hex of [...SMALL_ORDER, ...SMALL_ORDER_RESPELLED]) {
      expectSame(bytes(hex));
      expect(() => checkPoint(bytes(hex))).toThrow(expect.objectContaining({ code: "invalid-key" }));
    }
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 2n ** 252n }), fc.constantFrom(...TORSION), (log, torsion) => {
        const mixed = ed25519.Point.BASE.multiply(log).add(torsion).toBytes();
        expectSame(mixed);
        expect(outcome(() => checkPoint(mixed))).toBeUndefined();
      }),
      { numRuns: 50 },
    );
  });

  it("takes points in memory that threads share", () => {
    const shared = new Uint8Array(new SharedArrayBuffer(32));
    shared.set(ed25519.getPublicKey(new Uint8Array(32)));
    expectSame(shared);
  });
});

describe("the key of a signature that is verified next", () => {
  /** If its point is refused, that is found out with its signature, by `importPublicKey`. */
  const expectSame = (text: string): void => {
    const imported = outcome(() => importPublicKey(text));
    expect(outcome(() => importPublicKey(signersKey(text).pem))).toEqual(imported);
    if (typeof imported !== "string") expect(signersKey(text)).toEqual(imported);
    // A bad point verifies nothing; another spelling would be on the log as it came.
    const read = outcome(() => signersKey(text));
    if (typeof read !== "string" && read.algorithm === "ed25519") expect(read.pem).toBe(edPem(read.raw));
  };

  it("is the parser's, with every text that is a key or is none, and with every change of one character", () => {
    for (const [, text] of [...ACCEPTED_KEYS, ...SPELLINGS, ...REFUSED_KEYS]) expectSame(text);
    const change = fc.tuple(fc.constantFrom(ED25519_PEM, P256_PEM), fc.nat(), fc.string({ maxLength: 2 }));
    fc.assert(
      fc.property(change, ([text, place, put]) => {
        const at = place % text.length;
        expectSame(text.slice(0, at) + put + text.slice(at + 1));
      }),
      { numRuns: 1000 },
    );
  });

  it("is read in the one canonical spelling of base64", () => {
    const point = Buffer.from(ed25519.getPublicKey(new Uint8Array(32).fill(3)));
    const text = edPem(point);
    const body = point.toString("base64");
    const respelled = [
      body.replace("=", "+"),
      body.replace(/.=$/, (end) => `${next(end[0]!)}=`),
      `${body.slice(0, -2)}==`,
    ];
    for (const other of respelled) {
      const changed = text.replace(body.slice(-8), other.slice(-8));
      expectSame(changed);
    }
  });

  it("verifies nothing if its point is refused, also where the equation is true", () => {
    const message = messageFor((n) => Buffer.from(`cairn ${n}`));
    const refused = signatureCases(message).filter(({ says }) => says === "refused-key");
    expect(refused.length).toBeGreaterThan(10);
    for (const { name, key, signature } of refused) {
      const read = outcome(() => signersKey(key));
      if (typeof read !== "string") expect(verifySync(read, message, signature), name).toBe(false);
    }
  });
});

/** The base64 character after this one. */
const next = (character: string): string => {
  const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return ALPHABET[(ALPHABET.indexOf(character) + 1) % 64]!;
};
