/** `cairnlog operator rotate`, as an operator runs it: on a data directory, between two runs of the service. */
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { anyEvent } from "../anyevent.js";
import { FakeSigner } from "../crypto/signer/fakesigner.js";
import { scratchFolder, cairnlog as spawned, startService } from "../service.js";
import { cairnlog } from "./harness.js";

const scratch = scratchFolder();
afterAll(() => scratch.remove());
let count = 0;
let data: string;
let newFile: string;
const [oldPem, newPem] = [generatePrivateKey("ed25519"), generatePrivateKey("ecdsa-p256")];
const [oldKey, newKey] = [operatorKey(oldPem), operatorKey(newPem)];
const own = (name: string) => join(data, name);
const retired = () => own(`operator.${oldKey.fingerprint.slice("sha256:".length).slice(0, 16)}.pem`);
const text = (file: string) => readFileSync(file, "utf8");

/** A data directory with a log of three entries. */
beforeEach(async () => {
  data = join(scratch.path, `${++count}`);
  mkdirSync(data);
  newFile = join(scratch.path, "new.pem");
  writeFileSync(newFile, newPem, { mode: 0o600 });
  writeFileSync(own("operator.pem"), oldPem, { mode: 0o600 });
  const log = await openLog({ path: own("log"), signer: oldKey, projection });
  await log.append([0, 1, 2].map(() => anyEvent({})));
  await log.close();
});

const rotate = (...more: string[]) => cairnlog(["operator", "rotate", "--to", newFile, "--data", data, ...more]);

test("the log is handed over, and the new key is in its place", async () => {
  const { code, stdout, stderr } = await rotate();
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain(`Entry 4 hands the log from ${oldKey.fingerprint} to ${newKey.fingerprint}.`);
  expect(stdout).toContain(retired());
  expect(text(own("operator.pem"))).toBe(newPem);
  expect(text(own("operator.pub.pem"))).toBe(newKey.public.pem);
  expect(text(retired())).toBe(oldPem);
  for (const file of [own("operator.pem"), retired()]) expect(statSync(file).mode & 0o777).toBe(0o600);
  const service = await startService(data);
  const answer = (await (await fetch(`${service.url}/api/v1/log/operator-key`)).json()) as { operators: unknown[] };
  expect(answer).toMatchObject({ fingerprint: newKey.fingerprint, operators: [{ until_size: 3 }, { from_size: 4 }] });
  // While it runs, nobody else writes the log.
  const third = join(scratch.path, "third.pem");
  writeFileSync(third, generatePrivateKey("ed25519"));
  const refused = await spawned(["operator", "rotate", "--to", third, "--data", data]);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/in use by process \d+/);
  await service.stop();
});

test("with --json it says what it did, and where the keys are", async () => {
  const { stdout } = await rotate("--json");
  expect(JSON.parse(stdout)).toMatchObject({
    old_fingerprint: oldKey.fingerprint,
    fingerprint: newKey.fingerprint,
    rotated: { log_entry_id: 4, tree_size: 3, sth: { tree_size: 4, key_id: newKey.fingerprint } },
    operator_key_file: own("operator.pem"),
    retired_key_file: retired(),
    data_dir: data,
  });
});

test("where the keys cannot be put in place, it says that the log is the new key's already", async () => {
  const inTheWay = own("operator.pub.pem.new");
  mkdirSync(join(inTheWay, "folder"), { recursive: true });
  const { code, stdout, stderr } = await rotate();
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(
    `The log is handed over to ${newKey.fingerprint}, so keep ${newFile}. Run the command again`,
  );
  rmSync(inTheWay, { recursive: true });
  expect((await rotate()).stdout).toContain(`The log had been handed over to ${newKey.fingerprint} before.`);
  expect(text(own("operator.pem"))).toBe(newPem);
});

test("a key that SERVICE_OPERATOR_KEY names stays where it is", async () => {
  const elsewhere = join(scratch.path, "elsewhere.pem");
  writeFileSync(elsewhere, oldPem);
  rmSync(own("operator.pem"));
  const env = { ...process.env, SERVICE_OPERATOR_KEY: elsewhere };
  const { code, stdout } = await spawned(["operator", "rotate", "--to", newFile, "--data", data], { env });
  expect(code).toBe(0);
  expect(stdout).toContain(`Set SERVICE_OPERATOR_KEY to ${newFile}`);
  expect(text(elsewhere)).toBe(oldPem);
  const started = startService(data, { SERVICE_OPERATOR_KEY: elsewhere, LOG_LEVEL: "silent" });
  await expect(started).rejects.toThrow("exit code 1");
});

test("a key behind a socket takes the log over, and no private key is moved", async () => {
  const fake = await new FakeSigner(newPem).start();
  try {
    const { code, stdout } = await cairnlog(["operator", "rotate", "--to", fake.address, "--data", data]);
    expect(code).toBe(0);
    expect(stdout).toContain(`from ${oldKey.fingerprint} to ${newKey.fingerprint}`);
  } finally {
    await fake.remove();
  }
  expect(text(own("operator.pem"))).toBe(oldPem);
  expect(text(own("operator.pub.pem"))).toBe(newKey.public.pem);
});

test("a key behind SERVICE_SIGNER hands the log over to a file, and to another socket", async () => {
  const [present, next] = [await new FakeSigner(oldPem).start(), await new FakeSigner(newPem).start()];
  try {
    rmSync(own("operator.pem"));
    const first = await cairnlog(["operator", "rotate", "--to", newFile, "--data", data, "--json"], {
      SERVICE_SIGNER: present.address,
    });
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(first.stdout)).toMatchObject({
      old_fingerprint: oldKey.fingerprint,
      fingerprint: newKey.fingerprint,
      operator_key_file: null,
      retired_key_file: null,
    });
    expect(existsSync(own("operator.pem"))).toBe(false);
    present.pem = generatePrivateKey("ed25519");
    const again = ["operator", "rotate", "--to", present.address, "--data", data];
    const second = await cairnlog(again, { SERVICE_SIGNER: next.address });
    expect(second).toMatchObject({ code: 0, stderr: "" });
    expect(second.stdout).toContain(`\nSet SERVICE_SIGNER to ${present.address} before you start the service.\n`);
    const { fingerprint } = operatorKey(present.pem);
    // A run that was interrupted after that is finished by the next one.
    const third = await cairnlog(again, { SERVICE_SIGNER: next.address });
    expect(third).toMatchObject({ code: 0, stderr: "" });
    expect(third.stdout).toMatch(new RegExp(`^The log had been handed over to ${fingerprint} before\\.\n`));
  } finally {
    await Promise.all([present.remove(), next.remove()]);
  }
  const { code, stdout } = await cairnlog(["fsck", "--data", data]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: "5 entries, and nothing differs.\n" });
});

test("what an interrupted run left is finished by the next one", async () => {
  await rotateOperatorKey({ path: own("log"), from: oldKey, to: newKey, projection });
  // As if it had ended while it put the file in place.
  writeFileSync(own("operator.pem.new"), "half a ke");
  const { code, stdout } = await rotate();
  expect(code).toBe(0);
  expect(stdout).toContain(`had been handed over to ${newKey.fingerprint} before`);
  expect(text(own("operator.pem"))).toBe(newPem);
  expect(text(retired())).toBe(oldPem);
});

describe("is refused, and nothing has changed", () => {
  test.each<[string, () => void, RegExp, number]>([
    ["the same key", () => writeFileSync(newFile, oldPem), /is or was an operator key of this log/, 1],
    ["a file that holds no key", () => writeFileSync(newFile, "no key"), /key/, 1],
    ["a file that is not there", () => rmSync(newFile), /cannot be read/, 1],
    [
      "an operator key of another log",
      () => writeFileSync(own("operator.pem"), generatePrivateKey("ed25519")),
      /signed by operator key/,
      1,
    ],
    ["a log that a failure ended", () => writeFileSync(own("failure.json"), "{}"), /Start it once/, 1],
    ["a directory without a log", () => rmSync(own("log"), { recursive: true }), /there is no log in/, 2],
  ])("%s", async (_, prepare, sentence, exitCode) => {
    prepare();
    const before = text(own("operator.pem"));
    const { code, stderr } = await rotate();
    expect({ code, stderr }).toEqual({ code: exitCode, stderr: expect.stringMatching(sentence) });
    expect(text(own("operator.pem"))).toBe(before);
  });

  test("a command line that says nothing", async () => {
    expect((await cairnlog(["operator", "--data", data])).code).toBe(2);
    expect((await cairnlog(["operator", "rotate", "--data", data])).stderr).toContain("--to is missing");
  });
});

describe("the verifier key", () => {
  const vkey = (...more: string[]) => cairnlog(["operator", "vkey", "--data", data, ...more]);

  test("is what the service shows, also before its first start, and goes with the operator key", async () => {
    const { code, stdout, stderr } = await vkey();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const service = await startService(data);
    expect(await (await fetch(`${service.url}/tlog/vkey`)).text()).toBe(stdout);
    expect(JSON.parse((await vkey("--json")).stdout)).toEqual({ vkey: stdout.trim() });
    await service.stop();
    expect((await rotate()).code).toBe(0);
    // The new key cannot sign notes, so the service makes one that can.
    expect(await vkey()).toMatchObject({ code: 1, stderr: expect.stringContaining("tlog.pem") });
    const next = await startService(data);
    const shown = await (await fetch(`${next.url}/tlog/vkey`)).text();
    expect(shown.split("+")[0]).toBe(stdout.split("+")[0]);
    expect(shown).not.toBe(stdout);
    expect((await vkey()).stdout).toBe(shown);
    await next.stop();
  });

  test("of a tlog.pem stays when the operator key is rotated", async () => {
    writeFileSync(own("tlog.pem"), generatePrivateKey("ed25519"), { mode: 0o600 });
    const before = (await vkey()).stdout;
    expect((await rotate()).code).toBe(0);
    expect((await vkey()).stdout).toBe(before);
  });

  test("has no option --to", async () => {
    expect(await vkey("--to", newFile)).toMatchObject({ code: 2 });
  });
});
