/** RSA moduli that anybody can factor are no keys: at both parsers, and nowhere in the service. */
import { generateKeyPairSync, generatePrimeSync } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { importPublicKey, importRecordedKey } from "#cairnlog/engine/crypto/keys/spki.js";
import { factorable } from "#cairnlog/engine/verify/keys/modulus.js";
import { parsePublicKey } from "#cairnlog/engine/verify/keys/publickey.js";
import { expectProblem, startTestService } from "../../server/harness.js";
import { newManifest, newSigner, registration, submission } from "../../server/signers.js";
import { pem, RSA_ID, rsaKey, spki } from "./keys.js";

const prime = (bits: number): bigint => generatePrimeSync(bits, { bigint: true });
const pemOf = (modulus: bigint): string => pem(spki(RSA_ID, rsaKey(modulus, 65537n)));

/** The exponents of powers of 2048 bits and more whose root has no factor below 5000. */
const EXPONENTS = [2, 3, 4, 5, 6, 7, 9, 11, 13, 16, 25, 32, 49, 64, 97, 128, 157];
const powerOf = (k: number): bigint => {
  for (;;) {
    const power = prime(Math.ceil(2060 / k) + 1) ** BigInt(k);
    if (power.toString(2).length >= 2048) return power;
  }
};

test.each(EXPONENTS)("a power with the exponent %d", (k) => {
  const power = powerOf(k);
  expect(factorable(power)).toContain("power");
  // Its neighbours have no such root.
  for (const n of [power - 2n, power + 2n]) expect(factorable(n) ?? "").not.toContain("power");
  expect(() => parsePublicKey(pemOf(power))).toThrow(/modulus is a power/);
  expect(() => importPublicKey(pemOf(power))).toThrow(/modulus is a power/);
});

test("a product with a prime below 5000", () => {
  const rest = prime(2050);
  fc.assert(
    fc.property(fc.integer({ min: 3, max: 4_999 }), (factor) => {
      expect(factorable(rest * BigInt(factor | 1))).toContain("below 5000");
    }),
  );
  for (const factor of [3n, 4_999n]) expect(() => parsePublicKey(pemOf(rest * factor))).toThrow(/prime factor/);
  expect(factorable(rest * 5_003n)).toBeUndefined();
});

test("small numbers, each compared with its factors", () => {
  const isPowerOf = (n: number) => {
    for (let a = 2; a * a <= n; a++) for (let power = a * a; power <= n; power *= a) if (power === n) return true;
    return false;
  };
  for (const base of [5_003, 5_009, 5_011, 7_919])
    for (let k = 1; k <= 2; k++)
      for (const n of [base ** k, base * 5_021]) expect(factorable(BigInt(n)) !== undefined, `${n}`).toBe(isPowerOf(n));
});

describe("honest keys", () => {
  test.each([2048, 3072, 4096])("of %d bits are taken", (modulusLength) => {
    const { publicKey } = generateKeyPairSync("rsa", { modulusLength });
    const text = publicKey.export({ type: "spki", format: "pem" }).toString();
    expect(parsePublicKey(text).algorithm).toBe("rsa-2048");
  });
});

describe("a weak key", () => {
  const weak = pemOf(powerOf(2));

  test("is refused wherever a request names it", async () => {
    const service = await startTestService();
    const before = await service.entryCount();
    const named = registration(newSigner(), "weak", { public_key: weak, key_algorithm: "rsa-2048" });
    expectProblem(await service.post("/keys/register", named), 422, "invalid-key");
    const attested = submission(newSigner(), newManifest("weak"));
    expectProblem(await service.post("/attestations", { ...attested, public_key_pem: weak }), 422, "invalid-key");
    expect(await service.entryCount()).toBe(before);
  });

  test("that an earlier version recorded keeps its row", () => {
    expect(importRecordedKey(weak).fingerprint).toMatch(/^sha256:/);
    expect(() => importRecordedKey("no key")).toThrow(/PEM/);
  });
});
