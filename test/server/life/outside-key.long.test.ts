/** A service whose operator key is behind a socket (docs/signer.md): from the start to a signer that goes and comes back. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { FakeSigner } from "../../crypto/signer/fakesigner.js";
import { chain } from "../../log/history/entries.js";
import { cairnlog, MAIN } from "../../service.js";
import { attest } from "../attesting.js";
import { expectProblem, startTestService, type TestService, temporaryFolder } from "../harness.js";
import { newSigner, registration } from "../signers.js";

const fakes: FakeSigner[] = [];
afterEach(async () => {
  for (const fake of fakes.splice(0)) await fake.remove();
});

function newFake(pem?: string): FakeSigner {
  const fake = new FakeSigner(pem);
  fakes.push(fake);
  return fake;
}

const register = (service: TestService) => service.post("/keys/register", registration(newSigner()));
const connectedIn = async (service: TestService) =>
  /^cairnlog_signer_connected (\d)$/m.exec((await service.send("GET", "/metrics")).text)?.[1];

test("the key is in no file, everything that it signs holds, and a signer that fails is waited for", async () => {
  const fake = await newFake(generatePrivateKey("ecdsa-p256")).start();
  const service = await startTestService({ SERVICE_SIGNER: fake.address, SERVICE_SIGNER_TIMEOUT_S: "1" });
  const { dataDir } = service.server;
  expect(existsSync(join(dataDir, "operator.pem"))).toBe(false);
  expect(readFileSync(join(dataDir, "operator.pub.pem"), "utf8")).toBe(operatorKey(fake.pem).public.pem);
  expect((await attest(service.url, "first")).status).toBe(200);
  expect(await connectedIn(service)).toBe("1");

  // It does not answer.
  fake.misdeed = () => {};
  const late = await register(service);
  expectProblem(late, 503, "signer-unavailable");
  expect(late.headers.get("retry-after")).toBe("10");
  fake.misdeed = null;

  // It is gone.
  await expect.poll(() => connectedIn(service)).toBe("1");
  await fake.stop();
  await expect.poll(() => connectedIn(service)).toBe("0");
  const gone = await register(service);
  expectProblem(gone, 503, "signer-unavailable");
  // The path of the socket is nothing that a client should know.
  expect(gone.text).not.toContain(fake.path);
  await expect
    .poll(async () => (await service.send("GET", "/readyz")).body.detail)
    .toBe(`The operator key cannot sign. No signer can be reached at ${fake.path} (ENOENT).`);
  expect((await service.get("/log/sth")).status).toBe(200);
  expect((await service.send("GET", "/livez")).status).toBe(200);

  // It is another one.
  const own = fake.pem;
  fake.pem = generatePrivateKey("ecdsa-p256");
  await fake.start();
  await expect
    .poll(async () => (await service.send("GET", "/readyz")).body.detail)
    .toMatch(/^The operator key cannot sign\. The signer at \S+ has the key sha256:[0-9a-f]{64} now, not /);
  expectProblem(await register(service), 503, "signer-unavailable");

  // It is back.
  await fake.stop();
  fake.pem = own;
  await fake.start();
  await expect.poll(() => connectedIn(service)).toBe("1");
  expect((await attest(service.url, "second")).status).toBe(200);
  await expect.poll(async () => (await service.send("GET", "/readyz")).status).toBe(200);
  // The key of the attestations, and two attestations: nothing of what was refused.
  expect((await service.post("/log/verify")).body).toMatchObject({ valid: true, entry_count: 3 });
});

/** `cairnlog serve` in a process of its own, with what it writes to stderr. */
function serve(settings: NodeJS.ProcessEnv) {
  const env = { ...process.env, PORT: "0", LOG_LEVEL: "warn", SERVICE_DATA_DIR: temporaryFolder(), ...settings };
  const child = spawn(process.execPath, [MAIN, "serve", "--json"], { env, stdio: ["ignore", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  return { child, stderr: () => stderr };
}

test("a service that is started before its signer says so, and waits for it", async () => {
  const fake = newFake();
  const { child, stderr } = serve({ SERVICE_SIGNER: fake.address });
  await expect.poll(stderr).toContain(`waiting for it: No signer can be reached at ${fake.path} (ENOENT).`);
  await fake.start();
  const [line] = await once(child.stdout, "data");
  expect(JSON.parse(String(line))).toMatchObject({ operator_fingerprint: operatorKey(fake.pem).fingerprint });
  expect(stderr().match(/waiting for it/g)).toHaveLength(1);
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
});

test("a signer with the key of another log, and one without a usable key, end the start with a sentence", async () => {
  const fake = await newFake().start();
  const dataDir = temporaryFolder();
  const service = await startTestService({ SERVICE_SIGNER: fake.address, SERVICE_DATA_DIR: dataDir });
  await register(service);
  await service.close();
  const start = (signer: FakeSigner) =>
    cairnlog(["serve"], { env: { ...process.env, SERVICE_SIGNER: signer.address, SERVICE_DATA_DIR: dataDir } });
  const other = await start(await newFake().start());
  expect(other.code).toBe(1);
  expect(other.stderr).toContain(`This log is signed by operator key ${operatorKey(fake.pem).fingerprint}, not by`);
  fake.greeting = (socket) => socket.write('{"protocol":"cairnlog-signer/1","public_key":"none"}\n');
  const unusable = await start(fake);
  expect(unusable).toMatchObject({ code: 1, stderr: expect.stringContaining("The signer's public key is not one") });
});

test("a key file that was left in the data directory is named", async () => {
  const fake = await newFake().start();
  const dataDir = temporaryFolder();
  writeFileSync(join(dataDir, "operator.pem"), fake.pem, { mode: 0o600 });
  const { child, stderr } = serve({ SERVICE_SIGNER: fake.address, SERVICE_DATA_DIR: dataDir });
  await once(child.stdout, "data");
  expect(stderr()).toContain("the signer holds the operator key, but there is also a key file");
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
});

test("an import is signed by the signer", async () => {
  const fake = await newFake().start();
  const dataDir = temporaryFolder();
  const file = join(dataDir, "history.ndjson");
  const lines = chain([{}, {}]).map((entry) => `${JSON.stringify(entry)}\n`);
  writeFileSync(file, lines.join(""));
  const env = { ...process.env, SERVICE_SIGNER: fake.address };
  const imported = await cairnlog(["import", file, "--data", join(dataDir, "data"), "--json"], { env });
  expect(imported).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(imported.stdout)).toMatchObject({
    entry_count: 2,
    operator_fingerprint: operatorKey(fake.pem).fingerprint,
  });
  expect(fake.asked.map((messages) => messages.length)).toEqual([1]);
});
