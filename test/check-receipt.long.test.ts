/** `docs/check-receipt.sh`: a receipt is checked with openssl, python3 and curl alone. */
import { execFile } from "node:child_process";
import { createPrivateKey, sign } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { canonical, newSigner, sha256 } from "./server/signers.js";
import { cairnlog, scratchFolder, startService } from "./service.js";

const script = fileURLToPath(new URL("../docs/check-receipt.sh", import.meta.url));
const folder = scratchFolder();
afterAll(() => folder.remove());
const run = promisify(execFile);

test("checks a receipt with openssl, python3 and curl, in under 80 lines, and is not fooled", async () => {
  expect(readFileSync(script, "utf8").trimEnd().split("\n").length).toBeLessThan(80);
  const file = join(folder.path, "letter.txt");
  writeFileSync(file, "Dear Ada,\n");
  const data = join(folder.path, "checked");
  const service = await startService(data);
  try {
    const key = join(folder.path, "letter.pem");
    await cairnlog(["keygen", "--out", key]);
    await cairnlog(["attest", file, "--key", key, "--server", service.url]);
    const check = (...url: string[]) => run("bash", [script, file, join(data, "operator.pub.pem"), ...url]);
    const { stdout } = await check(service.url);
    expect(stdout.match(/^holds: /gm)).toHaveLength(12);

    const path = `${file}.attestation.json`;
    const bundle = JSON.parse(readFileSync(path, "utf8"));
    const otherBase64 = (text: string) => (text.startsWith("A") ? "B" : "A") + text.slice(1);
    const lies: [what: string, from: string, to: string][] = [
      ["the manifest is of this file", bundle.manifest.document.content_hash, `sha256:${"0".repeat(64)}`],
      ["the entry is of this manifest and this signature", '"title":"letter.txt"', '"title":"other.txt"'],
      ["the entry's hash is that of its content", bundle.attestation.id, "other"],
      ["the entry is leaf 0 of the tree of 2 leaves", '"leaf_index":1', '"leaf_index":0'],
      ["the entry is leaf 1 of the tree of 2 leaves", bundle.proof.audit_path[0], "0".repeat(64)],
      ["the signature over the head", bundle.tree_head.timestamp, "2020-01-01T00:00:00.000000Z"],
      ["the signature over the head", bundle.tree_head.signature, otherBase64(bundle.tree_head.signature)],
    ];
    for (const [name, from, to] of lies) {
      writeFileSync(path, JSON.stringify(bundle).replaceAll(from, to));
      const refused = await check().catch((error: { stdout: string; stderr: string }) => error);
      expect(refused.stdout + refused.stderr).toContain(`does not hold: ${name}`);
    }
    // Two readers of such a file could see two values.
    writeFileSync(path, JSON.stringify(bundle).replace('"title":', '"title":"other.txt","title":'));
    await expect(check()).rejects.toThrow("a member twice");
  } finally {
    await service.stop();
  }
});

test("names a file that it cannot read", async () => {
  const file = join(folder.path, "without a receipt.txt");
  writeFileSync(file, "Dear Ada,\n");
  const missing = `${file}.attestation.json`;
  await expect(run("bash", [script, file, file])).rejects.toMatchObject({
    code: 1,
    stderr: `cannot read ${missing}\n`,
  });
});

test("checks receipts of every algorithm, and uses the key in the entry as the signer's", async () => {
  const data = join(folder.path, "algorithms");
  mkdirSync(data);
  const operator = join(folder.path, "p256-operator.pem");
  await cairnlog(["keygen", "--out", operator, "--algorithm", "ecdsa-p256"]);
  const service = await startService(data, { SERVICE_OPERATOR_KEY: operator });
  try {
    const file = join(folder.path, "note.txt");
    writeFileSync(file, "Dear Grace,\n");
    const path = `${file}.attestation.json`;
    const check = () => run("bash", [script, file, join(data, "operator.pub.pem"), service.url]);
    for (const algorithm of ["ed25519", "ecdsa-p256", "rsa-2048"]) {
      const key = join(folder.path, `note-${algorithm}.pem`);
      await cairnlog(["keygen", "--out", key, "--algorithm", algorithm]);
      rmSync(path, { force: true });
      expect((await cairnlog(["attest", file, "--key", key, "--server", service.url])).code).toBe(0);
      const { stdout } = await check();
      expect(stdout.match(/^holds: /gm)).toHaveLength(12);
    }

    // Somebody else's key under a label that openssl skips, followed by the signer's own.
    const bundle = JSON.parse(readFileSync(path, "utf8"));
    const forger = newSigner();
    bundle.attestation.signature = forger.sign(canonical(bundle.manifest));
    bundle.public_key = bundle.public_key.replaceAll("PUBLIC KEY", "SOME KEY") + forger.publicKey;
    bundle.entry.payload.signature = bundle.attestation.signature;
    const { payload, previous_hash, timestamp } = bundle.entry;
    bundle.entry.entry_hash = sha256(`service.log.entry.v2\0${canonical({ payload, previous_hash, timestamp })}`);
    const signer = createPrivateKey(readFileSync(operator));
    const { tree_head } = bundle;
    Object.assign(tree_head, { tree_size: 1, root_hash: sha256(`\0${bundle.entry.entry_hash}`) });
    Object.assign(bundle.proof, { leaf_index: 0, audit_path: [] });
    const head = Buffer.from(`${tree_head.root_hash}:1:${tree_head.timestamp}`);
    tree_head.signature = sign("sha256", head, signer).toString("base64");
    writeFileSync(path, JSON.stringify(bundle));
    const refused = await check().catch((error: { stdout: string; stderr: string }) => error);
    expect(refused.stdout + refused.stderr).toContain("does not hold: the signature over the manifest");
  } finally {
    await service.stop();
  }
});
