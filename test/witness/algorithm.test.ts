/** A witness that signs with ML-DSA-44: its key, its cosignatures, and what it says when the key is of another algorithm. */
import { hash } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { mlDsaKey } from "#cairnlog/engine/crypto/keys/ml-dsa.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { parseVkey, verifyNote } from "#cairnlog/engine/verify/index.js";
import { temporaryFolder } from "../server/harness.js";
import { newMlDsaSigner } from "../verify/note/notes.js";
import { NAME, startTestWitness } from "./harness.js";
import { newTree } from "./logs.js";

const ML_DSA = { algorithm: "ml-dsa-44" } as const;

describe("a witness of ML-DSA-44", () => {
  test("makes its key, cosigns with it, and has the same one after a restart", async () => {
    const tree = newTree("log.example/pq-1");
    const dataDir = temporaryFolder();
    const first = await startTestWitness([tree], { ...ML_DSA, dataDir });
    const before = Math.floor(Date.now() / 1000);
    for (const [from, to] of [
      [0, 3],
      [3, 7],
      [7, 7],
    ] as const) {
      const time = await first.expectCosigned(await first.add(tree.body(from, to)), tree, to);
      expect(time).toBeGreaterThanOrEqual(before);
    }
    const { vkey } = first.running;
    expect(parseVkey(vkey)).toMatchObject({ name: NAME, type: "subtree/v1" });
    expect((await first.send("/vkey")).text).toBe(`${vkey}\n`);
    expect(JSON.parse((await first.send("/readyz")).text)).toMatchObject({ status: "ok", vkey });
    const kept = await first.send(`/${hash("sha256", tree.origin)}/checkpoint`);
    expect((await verifyNote(kept.text, [first.key, parseVkey(tree.signer.vkey)]))?.signatures).toHaveLength(2);
    await first.running.close();

    const file = join(dataDir, "witness.pem");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const { publicKey } = await mlDsaKey(readFileSync(file, "utf8"));
    expect(Buffer.from(parseVkey(vkey).material.subarray(1)).equals(publicKey)).toBe(true);

    const second = await startTestWitness([tree], { ...ML_DSA, dataDir });
    expect(second.running.vkey).toBe(vkey);
    expect((await second.add(tree.body(0, 9))).text).toBe("7\n");
    await second.expectCosigned(await second.add(tree.body(7, 9)), tree, 9);
  });

  test("refuses a fork as the other does", async () => {
    const tree = newTree("log.example/pq-2");
    const witness = await startTestWitness([tree], ML_DSA);
    await witness.expectCosigned(await witness.add(tree.body(0, 6)), tree, 6);
    expect((await witness.add(newTree(tree.origin, tree.signer, 3).body(6, 9))).status).toBe(422);
  });

  test("cannot cosign for an origin of more than 255 bytes, and says so; the other can", async () => {
    const [tree, longest] = [newTree(`log.example/${"x".repeat(244)}`), newTree(`log.example/${"x".repeat(243)}`)];
    const [witness, other] = [await startTestWitness([tree, longest], ML_DSA), await startTestWitness([tree])];
    const { status, text } = await witness.add(tree.body(0, 1));
    expect([status, JSON.parse(text).detail]).toEqual([400, expect.stringContaining("255 bytes")]);
    await witness.expectCosigned(await witness.add(longest.body(0, 1)), longest, 1);
    await other.expectCosigned(await other.add(tree.body(0, 1)), tree, 1);
  });

  test("does not start with a name of more than 255 bytes", async () => {
    await expect(startTestWitness([], { ...ML_DSA, name: "n".repeat(256) })).rejects.toMatchObject({
      code: "invalid-input",
    });
  });

  test("warns when others can read its key", async () => {
    const lines: string[] = [];
    const keyFile = join(temporaryFolder(), "key.pem");
    await startTestWitness([], { ...ML_DSA, keyFile }, lines);
    expect(lines).toEqual([]);
    const copy = join(temporaryFolder(), "key.pem");
    writeFileSync(copy, readFileSync(keyFile), { mode: 0o644 });
    await startTestWitness([], { ...ML_DSA, keyFile: copy }, lines);
    expect(lines).toEqual([expect.stringContaining("can be read by others")]);
  });
});

describe("a key of another algorithm than was asked", () => {
  const started = async (algorithm: "ed25519" | "ml-dsa-44") => {
    const dataDir = temporaryFolder();
    await (await startTestWitness([], { algorithm, dataDir })).running.close();
    return dataDir;
  };

  test.each([
    ["ed25519", "ml-dsa-44"],
    ["ml-dsa-44", "ed25519"],
  ] as const)("%s, and not %s", async (has, asked) => {
    const dataDir = await started(has);
    const file = join(dataDir, "witness.pem");
    const pem = readFileSync(file, "utf8");
    await expect(startTestWitness([], { algorithm: asked, dataDir })).rejects.toMatchObject({
      code: "invalid-key",
      message: expect.stringContaining(
        `The key in ${file} is of the algorithm ${has}, and the witness was to sign with ${asked}. Say --algorithm ${has},`,
      ),
    });
    expect(readFileSync(file, "utf8")).toBe(pem);
  });

  test("that no witness has", async () => {
    const keyFile = join(temporaryFolder(), "key.pem");
    writeFileSync(keyFile, generatePrivateKey("ecdsa-p256"), { mode: 0o600 });
    for (const algorithm of ["ed25519", "ml-dsa-44"] as const)
      await expect(startTestWitness([], { algorithm, keyFile })).rejects.toMatchObject({
        code: "invalid-key",
        message: expect.stringContaining("is of the algorithm ecdsa-p256"),
      });
  });
});

test("a log that signs with ML-DSA-44 is cosigned by both", async () => {
  const tree = newTree("log.example/pq-3", newMlDsaSigner("log.example/pq-3"));
  const fork = newTree(tree.origin, newMlDsaSigner(tree.origin));
  for (const algorithm of ["ed25519", "ml-dsa-44"] as const) {
    const witness = await startTestWitness([tree], { algorithm });
    expect((await witness.add(fork.body(0, 2))).status).toBe(403);
    await witness.expectCosigned(await witness.add(tree.body(0, 2)), tree, 2);
    await witness.expectCosigned(await witness.add(tree.body(2, 40)), tree, 40);
  }
});
