import { execFileSync } from "node:child_process";
import { createPublicKey, verify as opensslVerify } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { generatePrivateKey, privateKey, signSync } from "#cairnlog/engine/crypto/keys/signatures.js";
import { PasswordHasher } from "#cairnlog/engine/crypto/passwords/password.js";
import { createPool, SignatureVerifier } from "#cairnlog/engine/crypto/pool/pool.js";
import { pack, unpack } from "#cairnlog/engine/crypto/pool/worker.js";
import { openOperatorKey, operatorKey, signatures, writeKeyFile } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { cramped } from "../reliability/cramped.js";

const folder = mkdtempSync(join(tmpdir(), "cairnlog-keys-"));
const pool = createPool(2);
afterAll(async () => {
  await pool.close();
  rmSync(folder, { recursive: true, force: true });
});

const ALGORITHMS = ["ed25519", "ecdsa-p256", "rsa-2048"] as const;

/** The verdict of Node's own verification. */
function holds(pem: string, message: Uint8Array, signature: Uint8Array): boolean {
  const key = createPublicKey(pem);
  const name = key.asymmetricKeyType === "ed25519" ? null : "sha256";
  return opensslVerify(name, message, { key, dsaEncoding: "ieee-p1363" }, signature);
}

describe("the operator key file", () => {
  test("is made on first use, whole, readable by its owner alone, and is the same key ever after", () => {
    const path = join(folder, "sub", "operator.pem");
    const first = openOperatorKey(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(folder, "sub"))).toEqual(["operator.pem"]);
    expect(openOperatorKey(path).fingerprint).toBe(first.fingerprint);
    const der = execFileSync("openssl", ["pkey", "-in", path, "-pubout", "-outform", "DER"]);
    const fingerprint = execFileSync("openssl", ["dgst", "-sha256", "-r"], { input: der }).toString().split(" ")[0];
    expect(first.fingerprint).toBe(`sha256:${fingerprint}`);
  });

  test("is never overwritten", () => {
    const path = join(folder, "kept.pem");
    writeFileSync(path, "precious");
    expect(() => writeKeyFile(path, "other")).toThrow(/EEXIST/);
    expect(readFileSync(path, "utf8")).toBe("precious");
    expect(() => openOperatorKey(path)).toThrow(expect.objectContaining({ code: "invalid-key" }));
    expect(readFileSync(path, "utf8")).toBe("precious");
  });

  test("a key for which the disk has too little room is not written, nor a part of it", () => {
    const folder = mkdtempSync(join(tmpdir(), "cairnlog-key-"));
    try {
      const module = import.meta.resolve("#cairnlog/engine/crypto/signer/operator-key.js");
      const { status, stderr } = cramped(module, "writeKeyFile", join(folder, "key.pem"));
      expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining("EFBIG") });
      expect(readdirSync(folder)).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test.each([["ed25519"], ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"], ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]])(
    "may be one that openssl made (%s)",
    async (algorithm, ...options) => {
      const path = join(folder, `${algorithm}.pem`);
      execFileSync("openssl", ["genpkey", "-algorithm", algorithm, ...options, "-out", path], { stdio: "pipe" });
      const operator = openOperatorKey(path);
      const message = Buffer.from("root:1:time");
      const [signature] = await operator.sign([message]);
      expect(holds(operator.public.pem, message, signature!)).toBe(true);
    },
  );
});

describe.each(ALGORITHMS)("%s", (algorithm) => {
  const pem = generatePrivateKey(algorithm);
  const messages = Array.from({ length: 33 }, (_, n) => Buffer.from(`message ${n}`));

  test("batches are signed in the pool in order, single messages at once", async () => {
    const operator = operatorKey(pem, pool);
    const signatures = await operator.sign(messages);
    for (const [n, signature] of signatures.entries())
      expect(holds(operator.public.pem, messages[n]!, signature)).toBe(true);
    const [single] = await operator.sign([messages[5]!]);
    expect(holds(operator.public.pem, messages[5]!, single!)).toBe(true);
  });

  test("verdicts of a burst go to whom they belong", async () => {
    const key = privateKey(pem);
    const verifier = new SignatureVerifier(pool);
    const checks = Array.from({ length: 200 }, (_, n) => {
      const message = messages[n % messages.length]!;
      const signature = signSync(key, message);
      if (n % 3 === 0) signature[10]! ^= 1;
      return verifier.verify(key.public, message, signature);
    });
    expect(await Promise.all(checks)).toEqual(checks.map((_, n) => n % 3 !== 0));
    expect(await verifier.verify(key.public, messages[0]!, signSync(key, messages[0]!))).toBe(true);
    expect(await verifier.verify(key.public, messages[0]!, signSync(key, messages[1]!))).toBe(false);
  });
});

describe("every check of a burst is answered, each with its own verdict", () => {
  const key = privateKey(generatePrivateKey("ed25519"));
  const message = Buffer.from("message");
  const right = signSync(key, message);
  const wrong = right.map((byte, at) => (at === 10 ? byte ^ 1 : byte));
  const failing = { workers: 2, run: () => Promise.reject(new Error("the worker died")), close: async () => {} };
  test.each([
    ["by the thread that asks", () => new SignatureVerifier(null)],
    ["by the pool", () => new SignatureVerifier(pool)],
    ["by the thread that asks where the pool fails", () => new SignatureVerifier(failing)],
  ])("%s", async (_, verifier) => {
    const verifying = verifier();
    for (const count of [1, 64, 65, 300])
      for (let round = 0; round < 2; round++) {
        const checks = Array.from({ length: count }, (_, n) =>
          verifying.verify(key.public, message, n % 3 ? right : wrong),
        );
        expect(await Promise.all(checks)).toEqual(checks.map((_, n) => n % 3 > 0));
      }
  });
});

test.each([1, 2, 3])("a signer may use its memory again after it has made %d signatures", async (count) => {
  const { sign, public: key } = operatorKey(generatePrivateKey("ed25519"));
  const memory = new Uint8Array(64 * count);
  const signer = {
    async sign(messages: readonly Uint8Array[]) {
      memory.set(Buffer.concat(await sign(messages)));
      return messages.map((_, i) => memory.subarray(64 * i, 64 * (i + 1)));
    },
  };
  const messages = Array.from({ length: count }, (_, i) => Buffer.from([i]));
  const made = await signatures(signer, key, messages);
  memory.fill(0);
  for (const [i, message] of messages.entries())
    expect(holds(key.pem, message, made.subarray(64 * i, 64 * (i + 1)))).toBe(true);
});

test("signatures of a signer that have not the length of the verified one are refused, wherever they stand", async () => {
  const { sign, public: key } = operatorKey(generatePrivateKey("ed25519"));
  const messages = [1, 2, 3].map((n) => Buffer.from([n]));
  for (const at of [0, 1])
    for (const change of [-1, 1]) {
      const signer = {
        sign: async () => {
          const signed = await sign(messages);
          return signed.map((one, i) => (i === at ? Buffer.alloc(one.length + change) : one));
        },
      };
      await expect(signatures(signer, key, messages), `${at} ${change}`).rejects.toThrow(RangeError);
    }
});

test("packed lists come out again", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 20 }), (items) => {
      expect(unpack(pack(items)).map((item) => [...item])).toEqual(items.map((item) => [...item]));
    }),
  );
});

test("a pool that is closed finishes what it has accepted", async () => {
  const closed = createPool(1);
  const hashing = new PasswordHasher(closed).hash("correct horse");
  await closed.close();
  await expect(hashing).resolves.toMatch(/^\$argon2id\$/);
});

test("passwords leave a worker free for signatures", async () => {
  for (const [workers, atOnce] of [
    [1, 1],
    [2, 1],
    [4, 3],
  ] as const) {
    let running = 0;
    const hasher = new PasswordHasher({
      workers,
      run() {
        running++;
        return new Promise(() => {});
      },
      close: async () => {},
    });
    for (let n = 0; n < 6; n++) void hasher.hash("correct horse");
    expect(running).toBe(atOnce);
  }
});

test("a slot is free again however its work ended, and those that wait get it in their order", async () => {
  for (const workers of [1, 2, 4]) {
    const slots = Math.max(1, workers - 1);
    /** Of the tasks that run, oldest first. */
    const running: { end: (result: unknown) => void; fail: (error: Error) => void; input: unknown }[] = [];
    const run = <T>(_: URL, __: string, input: unknown) =>
      new Promise<T>((resolve, reject) => running.push({ input, end: resolve as () => void, fail: reject }));
    const hasher = new PasswordHasher({ workers, run, close: async () => {} });
    const verify = (phc: string) => hasher.verify("correct horse", phc).catch(({ message }: Error) => message);
    for (let round = 0; round < 3; round++) {
      const asked = Array.from({ length: 4 * slots }, (_, n) => verify(`${round} ${n}`));
      for (let n = 0; n < asked.length; n++) {
        await new Promise((resolve) => setImmediate(resolve));
        expect(running.length).toBe(Math.min(slots, asked.length - n));
        const { input, end, fail } = running.shift()!;
        expect(input).toMatchObject({ phc: `${round} ${n}` });
        // Right, wrong, a worker that died, a right one that another waits for.
        if (n % 2) fail(new Error(`failed ${n}`));
        else end(n % 4 === 0);
        expect(await asked[n]).toBe(n % 2 ? `failed ${n}` : n % 4 === 0);
      }
    }
  }
});

test("those that are refused because too many wait take no slot, and the others are answered", async () => {
  let running = 0;
  const run = async <T>() => {
    running++;
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    return true as T;
  };
  const hasher = new PasswordHasher({ workers: 1, run, close: async () => {} });
  for (let round = 0; round < 2; round++) {
    const asked = Array.from({ length: 300 }, () => hasher.verify("correct horse", ""));
    const outcomes = await Promise.allSettled(asked);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(257);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "overloaded" });
  }
  expect(running).toBe(0);
});

test("a closed pool refuses work", async () => {
  const closed = createPool(1);
  await closed.close();
  await expect(closed.run(new URL("file:///nowhere.js"), "x", {})).rejects.toThrow("closed");
});
