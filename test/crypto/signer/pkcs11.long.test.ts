/**
 * The sample signer for PKCS#11 tokens, with SoftHSM: docs/examples/signer. Needs the Debian packages softhsm2, opensc and
 * python3-pykcs11, which `.ci/run` installs.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { signerAt } from "#cairnlog/engine/index.js";
import type { TreeHead } from "#cairnlog/engine/verify/index.js";
import { type Acknowledged, attest, attestUntilGone } from "../../server/attesting.js";
import { type RunningService, startService } from "../../service.js";
import { derOf } from "./der.js";

const MODULE = "/usr/lib/softhsm/libsofthsm2.so";
const SAMPLE = fileURLToPath(new URL("../../../docs/examples/signer/pkcs11-signer.py", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "cairnlog-hsm-"));
const at = (name: string) => join(folder, name);
const env = { ...process.env, SOFTHSM2_CONF: at("softhsm2.conf"), PKCS11_PIN: "1234", PYTHONDONTWRITEBYTECODE: "1" };
const signers = new Set<ChildProcess>();

beforeAll(() => {
  mkdirSync(at("tokens"));
  writeFileSync(at("softhsm2.conf"), `directories.tokendir = ${at("tokens")}\nlog.level = ERROR\n`);
  const run = (command: string, ...args: string[]) => execFileSync(command, args, { env, stdio: "pipe" });
  run("softhsm2-util", "--init-token", "--free", "--label", "cairnlog", "--so-pin", "0000", "--pin", "1234");
  const token = ["--module", MODULE, "--token-label", "cairnlog", "--pin", "1234"];
  for (const [label, type] of [
    ["ed25519", "EC:edwards25519"],
    ["ecdsa-p256", "EC:prime256v1"],
    ["rsa-2048", "rsa:2048"],
  ] as const)
    run("pkcs11-tool", ...token, "--keypairgen", "--key-type", type, "--label", label);
});
afterAll(async () => {
  for (const child of signers) await kill(child);
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the sample for one of the keys. */
async function startSample(label: string, state?: string): Promise<ChildProcess> {
  const options = ["--module", MODULE, "--token", "cairnlog", "--label", label, ...(state ? ["--state", state] : [])];
  const child = spawn(SAMPLE, [...options, at("signer.sock")], { env, stdio: ["ignore", "pipe", "inherit"] });
  signers.add(child);
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`the sample ended with ${code}`);
  });
  const [said] = await Promise.race([once(createInterface({ input: child.stdout! }), "line"), ended]);
  ended.catch(() => {});
  expect(said).toBe(`signing at unix:${at("signer.sock")}`);
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  signers.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

const start = (data: string): Promise<RunningService> =>
  startService(data, { SERVICE_SIGNER: `unix:${at("signer.sock")}`, LOG_LEVEL: "silent" });
const isReady = async ({ url }: RunningService) => (await fetch(`${url}/readyz`)).status;
const sizeOf = async ({ url }: RunningService): Promise<number> =>
  (await (await fetch(`${url}/api/v1/log/sth`)).json()).tree_size;

test.each(["ed25519", "ecdsa-p256", "rsa-2048"])("the sample signs with an %s key of the token", async (label) => {
  const sample = await startSample(label);
  // Every signature is verified by `signerAt`.
  const signer = await signerAt(`unix:${at("signer.sock")}`);
  expect(signer.public.algorithm).toBe(label);
  expect(await signer.sign([Buffer.from("one"), Buffer.from("two")])).toHaveLength(2);
  await signer.close();
  await kill(sample);
});

test("a service whose key is in a token: the signer is killed and restarted under load, and openssl verifies every head", async () => {
  const data = at("data");
  let sample = await startSample("ecdsa-p256", at("state.json"));
  const service = await start(data);
  const acknowledged: Acknowledged[] = [];
  const refusals = new Set<string>();
  let isOver = false;
  const work = async (_: unknown, worker: number) => {
    for (let n = 0; !isOver; n++) {
      const response = await attest(service.url, `worker ${worker} document ${n}`);
      const answer = await response.json();
      if (response.status === 200) acknowledged.push(answer);
      else refusals.add(`${response.status} ${answer.code} ${response.headers.get("retry-after")}`);
    }
  };
  const load = Promise.all(Array.from({ length: 16 }, work));
  for (let round = 1; round <= 3; round++) {
    const before = acknowledged.length;
    await expect.poll(() => acknowledged.length).toBeGreaterThan(before + 20);
    await kill(sample);
    await expect.poll(() => isReady(service)).toBe(503);
    sample = await startSample("ecdsa-p256", at("state.json"));
    await expect.poll(() => isReady(service)).toBe(200);
  }
  const before = acknowledged.length;
  await expect.poll(() => acknowledged.length).toBeGreaterThan(before + 20);
  isOver = true;
  await load;
  expect([...refusals]).toEqual(["503 signer-unavailable 10"]);

  const size = await sizeOf(service);
  const heads = new Map<number, TreeHead>();
  for (let n = 1; n <= size; n++) {
    const head: TreeHead = await (await fetch(`${service.url}/api/v1/log/sth/${n}`)).json();
    heads.set(n, head);
    writeFileSync(at("head"), `${head.root_hash}:${head.tree_size}:${head.timestamp}`);
    writeFileSync(at("signature"), Buffer.from(derOf(head.signature), "base64"));
    const files = ["-signature", at("signature"), at("head")];
    execFileSync("openssl", ["dgst", "-sha256", "-verify", join(data, "operator.pub.pem"), ...files]);
  }
  for (const { sth } of acknowledged) expect(heads.get(sth.tree_size)).toMatchObject(sth);
  const report = await (await fetch(`${service.url}/api/v1/log/verify`, { method: "POST" })).json();
  expect(report).toMatchObject({ valid: true, entry_count: size });
  expect(readdirSync(data)).not.toContain("operator.pem");
  expect(await service.stop()).toBe(0);
  await kill(sample);
});

test("the sample's state file stops no log whose service was killed between signing and writing", async () => {
  const data = at("killed");
  const sample = await startSample("ecdsa-p256", at("killed.json"));
  const acknowledged: Acknowledged[] = [];
  for (let round = 0; round < 5; round++) {
    const service = await start(data);
    const load = attestUntilGone(service.url, 16, acknowledged);
    const before = acknowledged.length;
    await expect.poll(() => acknowledged.length, { interval: 5 }).toBeGreaterThan(before + 10 * round);
    service.process.kill("SIGKILL");
    await load;
    await service.exited;
  }
  const service = await start(data);
  expect((await attest(service.url, "last")).status).toBe(200);
  const report = await (await fetch(`${service.url}/api/v1/log/verify`, { method: "POST" })).json();
  expect(report).toMatchObject({ valid: true });
  await service.stop();
  await kill(sample);
});

test("with a state file, the sample signs no second history of a log that was set back", async () => {
  const [data, old] = [at("forked"), at("old")];
  let sample = await startSample("ed25519", at("fork.json"));
  let service = await start(data);
  const append = async (title: string) => (await attest(service.url, title)).status;
  for (const title of ["1", "2", "3"]) expect(await append(title)).toBe(200);
  await service.stop();
  cpSync(data, old, { recursive: true });
  service = await start(data);
  for (const title of ["4", "5", "6"]) expect(await append(title)).toBe(200);
  await service.stop();
  await kill(sample);

  sample = await startSample("ed25519", at("fork.json"));
  rmSync(data, { recursive: true });
  cpSync(old, data, { recursive: true });
  rmSync(join(data, "published.json"), { force: true });
  service = await start(data);
  const size = await sizeOf(service);
  expect(await append("another 4")).toBe(503);
  expect(await sizeOf(service)).toBe(size);
  await service.stop();

  // The same log with all of its entries goes on.
  expect(existsSync(at("fork.json"))).toBe(true);
  expect(JSON.parse(readFileSync(at("fork.json"), "utf8")).final).toBeGreaterThan(size);
  await kill(sample);
});
