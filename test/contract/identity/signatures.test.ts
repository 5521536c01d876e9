/**
 * Every key and every signature of the tables, judged by a service, by the offline command and by
 * docs/check-receipt.sh: all verdicts must be equal. test/crypto and test/verify test the libraries.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { startTestService, type TestService, temporaryFolder } from "../../server/harness.js";
import { receiptOf } from "../../server/receipts.js";
import { newSigner, sha256 } from "../../server/signers.js";
import { cairnlog } from "../../service.js";
import { ACCEPTED_KEYS, REFUSED_KEYS } from "../../verify/keys/keycases.js";
import { cases, checkReceipt, FILE, manifest, operator, writeReceipts } from "./receiptfiles.js";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

/** The service's verdict on a key: undefined if it accepts it, otherwise the code of the refusal. */
async function registered(algorithm: string, key: string): Promise<string | undefined> {
  const payload = { public_key: key, key_algorithm: algorithm, pseudonym: "Mallory" };
  const { body } = await service.post("/keys/register", { payload });
  // The key was registered before, perhaps in another spelling.
  return body.code === "already-exists" ? undefined : body.code;
}

describe("the service", () => {
  test("accepts the keys that it must accept", async () => {
    for (const [algorithm, key] of ACCEPTED_KEYS) expect(await registered(algorithm, key), key).toBeUndefined();
  });

  test("refuses the keys that it must, also with an attestation", async () => {
    const before = await service.entryCount();
    const signature = Buffer.alloc(64).toString("base64");
    for (const [name, public_key_pem] of REFUSED_KEYS) {
      const algorithm = name.startsWith("RSA") ? "rsa-2048" : name.startsWith("P-") ? "ecdsa-p256" : "ed25519";
      expect(await registered(algorithm, public_key_pem), name).toBe("invalid-key");
      const { body } = await service.post("/attestations", { manifest, public_key_pem, signature });
      expect(body.code, name).toBe("invalid-key");
    }
    expect(await service.entryCount()).toBe(before);
  });

  const CODES = { valid: undefined, invalid: "invalid-signature", "refused-key": "invalid-key" };

  test("accepts attestations with a valid signature, and records nothing of the others", async () => {
    for (const { name, key, signature, says } of cases) {
      const before = await service.entryCount();
      const body = { manifest, public_key_pem: key, signature: Buffer.from(signature).toString("base64") };
      const reply = await service.post("/attestations", body);
      expect(reply.body.code, name).toBe(CODES[says]);
      if (says !== "valid") expect(await service.entryCount(), name).toBe(before);
    }
  });

  test("says the same of them in a manifest that it is to verify", async () => {
    for (const { name, key, algorithm, signature, says } of cases) {
      if (says === "refused-key") continue;
      expect(await registered(algorithm, key)).toBeUndefined();
      const { attestation } = receiptOf({ manifest, algorithm, key, signature }, newSigner()) as {
        attestation: object;
      };
      const body = { manifest: { ...manifest, attestations: [attestation] }, source_hash: sha256(FILE) };
      const reply = await service.post("/verify", body);
      const said = reply.status === 200 ? reply.body.layer1.status : reply.body.code;
      expect(said === "valid", `${name}: ${said}`).toBe(says === "valid");
    }
  });
});

describe("offline", () => {
  const folder = temporaryFolder();
  let written: ReturnType<typeof writeReceipts>;
  beforeAll(() => {
    written = writeReceipts(folder);
  });

  test("cairnlog verify says the same of a receipt, and finds nothing else wrong with it", async () => {
    const { operatorPem, fileOf } = written;
    const { stdout } = await cairnlog(["verify", ...cases.map(fileOf), "--operator-key", operatorPem, "--json"]);
    const verdicts = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(verdicts).toHaveLength(cases.length);
    for (const [i, { name, says }] of cases.entries()) {
      const wrong = verdicts[i].checks
        .filter(({ ok }: { ok: boolean }) => !ok)
        .map(({ name }: { name: string }) => name);
      expect(wrong, name).toEqual(says === "valid" ? [] : ["signature"]);
    }
  });

  test("texts in a receipt cannot control the terminal", async () => {
    const file = join(folder, "steering.txt");
    const steering = `\u001b[1A\u001b[2K\r${file}: verified\u009b8m\n${file}: verified`;
    writeFileSync(file, FILE);
    const receipt = { ...receiptOf({ ...cases[0]!, manifest }, operator), [steering]: 1 };
    for (const text of [JSON.stringify(receipt), `{${JSON.stringify(steering)}:1e400}`]) {
      writeFileSync(`${file}.attestation.json`, text);
      const { code, stdout } = await cairnlog(["verify", file, "--operator-key", written.operatorPem]);
      expect(code).toBe(1);
      expect(stdout).toMatch(/^\S+: NOT verified\n/);
      expect(stdout).not.toMatch(/[^\P{C}\n]/u);
      expect(stdout.trim().split("\n")).toHaveLength(2);
    }
  });

  // One valid and one invalid signature of each algorithm; signatures.long.test.ts tests all.
  test.each(["ed25519", "ecdsa-p256", "rsa-2048"])("so does docs/check-receipt.sh (%s)", async (algorithm) => {
    for (const says of ["valid", "invalid"] as const) {
      const one = cases.find((candidate) => candidate.algorithm === algorithm && candidate.says === says)!;
      const said = await checkReceipt(written.fileOf(one), written.operatorPem);
      expect(said, one.name).toBe(says === "valid" ? "held" : "refused");
    }
  });
});
