/** The self-test of the verifiers: its vectors say what the rules say, and a verifier that is wrong about one is found. */
import { createPublicKey, verify } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ed25519 } from "@noble/curves/ed25519.js";
import { p256 } from "@noble/curves/nist.js";
import { describe, expect, it, test } from "vitest";
import { selfTest } from "#cairnlog/engine/crypto/selftest.js";
import { VECTORS, type Vector } from "#cairnlog/engine/crypto/selftest-vectors.js";
import { parsePublicKey } from "#cairnlog/engine/verify/keys/publickey.js";
import { verifySignature } from "#cairnlog/engine/verify/keys/signature.js";
import { cairnlog, scratchFolder } from "../service.js";
import { edPem } from "../verify/keys/signaturecases.js";

const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, "hex"));

function pemOf({ algorithm, key }: Vector): string {
  if (algorithm === "ed25519") return edPem(bytes(key));
  return createPublicKey({ key: Buffer.from(key, "hex"), format: "der", type: "spki" })
    .export({ format: "pem", type: "spki" })
    .toString();
}

test("every verifier of a service is right about every vector", () => {
  expect(() => selfTest()).not.toThrow();
});

test.each(VECTORS)("$name: $says, as third parties verify it", async (vector) => {
  if (vector.says === "refused-key") {
    expect(() => parsePublicKey(pemOf(vector))).toThrow(expect.objectContaining({ code: "invalid-key" }));
    return;
  }
  const key = parsePublicKey(pemOf(vector));
  expect(await verifySignature(key, bytes(vector.message), bytes(vector.signature))).toBe(vector.says === "valid");
});

test("a service whose library says yes to every signature does not start, and says why", async () => {
  const folder = scratchFolder();
  const preload = join(folder.path, "lying.cjs");
  const library = fileURLToPath(import.meta.resolve("sodium-native"));
  writeFileSync(preload, `require(${JSON.stringify(library)}).crypto_sign_verify_detached = () => true;`);
  const data = join(folder.path, "data");
  const env = { ...process.env, NODE_OPTIONS: `--require ${preload}`, PORT: "0", SERVICE_DATA_DIR: data };
  const { code, stdout, stderr } = await cairnlog(["serve"], { env });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(
    "cairnlog: The self-test of cryptography failed: the check of signatures one by one is wrong about",
  );
  expect(existsSync(data)).toBe(false);
  folder.remove();
});

test("the vectors show torsion, cofactor, small order, both bounds of S, and every algorithm, valid and not", () => {
  const names = VECTORS.map(({ name }) => name).join("\n");
  for (const word of [
    "small-order part",
    "cofactor only",
    "key of order 8",
    "S + L",
    "high S",
    "small order, respelled",
  ])
    expect(names).toContain(word);
  for (const algorithm of ["ed25519", "ecdsa-p256", "rsa-2048"])
    for (const says of ["valid", "invalid"])
      expect(VECTORS.some((vector) => vector.algorithm === algorithm && vector.says === says)).toBe(true);
  expect(new Set(VECTORS.map(({ name }) => name)).size).toBe(VECTORS.length);
});

/** The names of all judges, in order. */
const JUDGES: string[] = [];
selfTest((judge) => {
  JUDGES.push(judge.name);
  return judge;
});

/** The self-test, where the judge of this name decides otherwise. */
const selfTestWith = (name: string, changed: (vectors: readonly Vector[], honest: readonly boolean[]) => boolean[]) =>
  selfTest((judge) => ({
    ...judge,
    judge: (vectors) => (judge.name === name ? changed(vectors, judge.judge(vectors)) : judge.judge(vectors)),
  }));

describe.each(JUDGES)("a check of %s", (name) => {
  it("is refused if it is wrong about any one of the vectors, which is named", () => {
    for (const [at, vector] of VECTORS.entries()) {
      const sentence = expect.stringContaining(`the check of ${name} is wrong about "${vector.name}"`);
      expect(() => selfTestWith(name, (_, honest) => honest.map((is, i) => (i === at ? !is : is)))).toThrow(
        expect.objectContaining({ code: "precondition-failed", message: sentence }),
      );
    }
  });

  it("is refused if it decides nothing", () => {
    expect(() => selfTestWith(name, () => [])).toThrow(/self-test/);
  });
});

/** Rules of other libraries. They verify every honest signature, and refuse every one with a wrong bit. */
const OTHERS: Readonly<Record<string, (vector: Vector) => boolean>> = {
  "Ed25519 with cofactor (ZIP 215)": ({ key, message, signature }) =>
    ed25519.verify(bytes(signature), bytes(message), bytes(key), { zip215: true }),
  "Ed25519 of OpenSSL, which takes points of small order": (vector) =>
    verify(null, bytes(vector.message), pemOf(vector), bytes(vector.signature)),
  "P-256 with a low S only": ({ key, message, signature }) =>
    signature.length === 128 && p256.verify(bytes(signature), bytes(message), bytes(key).slice(-65), { lowS: true }),
};

test.each(Object.entries(OTHERS))("a library with other rules is found: %s", (name, rule) => {
  const algorithm = name.startsWith("Ed25519") ? "ed25519" : "ecdsa-p256";
  const changed = (vectors: readonly Vector[], honest: readonly boolean[]) =>
    honest.map((is, i) => (vectors[i]!.algorithm === algorithm ? decided(rule, vectors[i]!) : is));
  expect(() => selfTestWith(JUDGES[0]!, changed)).toThrow(/is wrong about "(?:ed25519|ecdsa-p256): /);
});

function decided(rule: (vector: Vector) => boolean, vector: Vector): boolean {
  try {
    return rule(vector);
  } catch {
    return false;
  }
}
