/** Slow cases of `cairnlog attest`: a file of gigabytes, and waiting for a rate limit. */
import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { newSigner } from "../server/signers.js";
import { cairnlog, scratchFolder, startService } from "../service.js";

const folder = scratchFolder();
const at = (name: string) => join(folder.path, name);
afterAll(() => folder.remove());
writeFileSync(at("me.pem"), newSigner().privateKey);

test("a file of gigabytes is hashed in constant memory", async () => {
  // Sparse: it costs no disk. Node reads no file of more than 2 GiB at once.
  writeFileSync(at("large.bin"), "");
  truncateSync(at("large.bin"), 2 ** 31 + 1);
  const service = await startService(at("data"));
  const args = ["--key", at("me.pem"), "--server", service.url, "--pseudonym", "Ada"];
  const run = await cairnlog(["attest", at("large.bin"), ...args], {
    env: { ...process.env, NODE_OPTIONS: "--max-old-space-size=64" },
  });
  await service.stop();
  expect(run.code).toBe(0);
  const verified = await cairnlog(["verify", at("large.bin"), "--operator-key", at("data/operator.pub.pem")]);
  expect(verified.code).toBe(0);
});

test("attest waits out a limit of a minute, and says when one lasts longer", async () => {
  const service = await startService(at("limited"), {
    SERVICE_RATE_LIMITS: "on",
    SERVICE_RATE_LIMIT_GENERAL: "6",
    SERVICE_RATE_LIMIT_ATTESTATION: "4",
  });
  // Five files under a limit of four attestations.
  const files = [1, 2, 3, 4, 5].map((n) => {
    const file = at(`limited ${n}.txt`);
    writeFileSync(file, `${n}`);
    return file;
  });
  const run = await cairnlog(["attest", ...files, "--key", at("me.pem"), "--server", service.url]);
  await service.stop();
  expect(run.code).toBe(1);
  // The requests for the operator key and the receipts used up the general limit at least once.
  expect(run.stderr).toMatch(/limit is reached; trying again in \d+ s/);
  expect(run.stdout.match(/entry \d+/g)).toHaveLength(4);
  expect(run.stderr).toMatch(/"attestation" is used up/);
  expect(run.stderr.match(/Try again in/g)).toHaveLength(1);
});
