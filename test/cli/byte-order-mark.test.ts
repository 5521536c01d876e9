/** A byte order mark before a text is no part of it, whatever kind of file it is. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { generatePrivateKey, privateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { parsePublicKey } from "#cairnlog/engine/verify/index.js";
import { readConfig } from "#cairnlog/server/cli/connection/config-file.js";
import { readObject } from "#cairnlog/server/cli/files/objects.js";
import { readPublicKey } from "#cairnlog/server/cli/files/public-key.js";
import { privateKeyIn, readSecret } from "#cairnlog/server/cli/files/secrets.js";
import { readSigners } from "#cairnlog/server/cli/files/signers.js";
import { loadEnvFile } from "#cairnlog/server/cli/operate/env-file.js";
import { verifyFile } from "#cairnlog/server/cli/verifying/bundles.js";
import { readWitnessPolicy } from "#cairnlog/server/cosigning/policyfile.js";
import { readWriters } from "#cairnlog/server/opening/writers.js";
import { parseWitnessedLogs } from "#cairnlog/server/witness/logs.js";
import { scratchFolder } from "../service.js";

const folder = scratchFolder();
afterAll(() => folder.remove());
const pem = generatePrivateKey("ed25519");
const { public: own } = privateKey(pem);

/** A file that Notepad or PowerShell might have written. */
function marked(name: string, content: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, `\uFEFF${content}`);
  return path;
}

beforeAll(() => {
  vi.stubEnv("XDG_CONFIG_HOME", folder.path);
  mkdirSync(join(folder.path, "cairnlog"));
});
afterAll(() => void vi.unstubAllEnvs());

test("bundles and other objects", async () => {
  const path = marked("a.json", '{"a":1}');
  expect(await verifyFile(path, path, { operatorKey: parsePublicKey(own.pem) })).toMatchObject({ bundle: { a: 1 } });
  expect(readObject(path)).toEqual({ a: 1 });
});

test("the configuration", () => {
  marked("cairnlog/config.json", '{"server":"https://log.example","services":{}}');
  expect(readConfig()).toEqual({ server: "https://log.example", services: {} });
});

test("keys, passphrases and lists of signers", async () => {
  expect(readPublicKey(marked("key.pub.pem", own.pem)).fingerprint).toBe(own.fingerprint);
  expect((await privateKeyIn(marked("key.pem", pem))).public.fingerprint).toBe(own.fingerprint);
  expect(readSecret(marked("passphrase", "secret\r\n"))).toBe("secret");
  expect(readSigners([marked("signers", `ada@example.org ${own.fingerprint}\n`)])).toMatchObject([
    { fingerprint: own.fingerprint },
  ]);
});

test("what a service and a witness read when they start", async () => {
  const variables = marked("environment", "SERVICE_OPERATOR_NAME=The Operator\n");
  const before = { ...process.env };
  expect(loadEnvFile(["serve", "--env-file", variables])).toBeNull();
  expect(Object.keys(process.env).filter((name) => !(name in before))).toEqual(["SERVICE_OPERATOR_NAME"]);
  delete process.env.SERVICE_OPERATOR_NAME;
  const writers = marked("writers", `# Those who may write.\nada ${own.fingerprint}\n`);
  expect(readWriters({ writers })).toMatchObject([{ fingerprint: own.fingerprint }]);
  expect(readWitnessPolicy(marked("policy", "# No witnesses.\nquorum none\n")).quorum).toBeNull();
  expect(parseWitnessedLogs("\uFEFF# No logs.\n").size).toBe(0);
});
