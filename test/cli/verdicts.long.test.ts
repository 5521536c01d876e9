/** `cairnlog verify` and `attest`: what they print of single files, whole, and what an interrupted `bench` leaves. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { COMMANDS } from "#cairnlog/server/cli/commands.js";
import { serve } from "#cairnlog/server/cli/operate/serve.js";
import { anyEvent } from "../anyevent.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner } from "../server/signers.js";
import { MAIN } from "../service.js";
import { cairnlog, pin } from "./harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
let service: TestService;
beforeAll(async () => {
  service = await startTestService({ SERVICE_DATA_DIR: at("data") });
  await pin(service.url);
  writeFileSync(at("me.pem"), newSigner().privateKey);
  for (const name of ["one", "two"]) writeFileSync(at(name), `This is ${name}.`);
  expect(await attest(at("one"))).toMatchObject({ code: 0, stderr: "" });
});
const attest = (...args: string[]) => cairnlog(["attest", ...args, "--key", at("me.pem"), "--server", service.url]);
const verify = (...args: string[]) =>
  cairnlog(["verify", ...args, "--operator-key", at("data/operator.pub.pem"), "--json"]);

/** Who, as what, when, where and witnessed by whom, of an attestation that holds. */
const SUMMARY = {
  who: { fingerprint: expect.stringMatching(/^sha256:/), algorithm: "ed25519", is_named: false },
  as: { type: "authorship", is_signed: true, statement: null },
  when: expect.stringMatching(/Z$/),
  where: {
    ...{ url: null, operator_key: expect.stringMatching(/^sha256:/) },
    ...{ log_entry_id: expect.any(Number), leaf_index: expect.any(Number) },
  },
  witnessed_by: null,
  key_status: null,
  private_title: null,
};
const NOTHING = Object.fromEntries(Object.keys(SUMMARY).map((name) => [name, null]));

describe("verify --json", () => {
  test("has every check, and what the signer signed", async () => {
    const { code, stdout } = await verify(at("one"));
    expect(code).toBe(0);
    const verdict = JSON.parse(stdout);
    expect(verdict).toEqual({
      file: at("one"),
      receipt: at("one.attestation.json"),
      ...{ valid: true, verdict: "valid", withheld_by: null },
      checks: expect.any(Array),
      signed: { attestation_type: true, intent_statement: true },
      ...SUMMARY,
    });
    expect(verdict.checks.length).toBeGreaterThan(4);
    for (const check of verdict.checks)
      expect(check).toEqual({ name: expect.any(String), ok: true, detail: expect.any(String) });
  });

  test.each([
    ["a file that is not there", "none", /^There is no file .*none \(ENOENT\)\.$/],
    ["a file without its attestation", "two", /^There is no file .*two\.attestation\.json \(ENOENT\)\.$/],
  ])("of %s has the reason", async (_, name, detail) => {
    const { code, stdout, stderr } = await verify(at(name));
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(JSON.parse(stdout)).toEqual({
      file: at(name),
      receipt: at(`${name}.attestation.json`),
      ...{ valid: false, verdict: "invalid", withheld_by: null },
      checks: [{ name: "format", ok: false, detail: expect.stringMatching(detail) }],
      signed: null,
      ...NOTHING,
    });
  });

  test("of a broken attestation names its file", async () => {
    writeFileSync(at("broken"), "{");
    const { code, stdout } = await verify(at("one"), "--attestation", at("broken"));
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toEqual({
      file: at("one"),
      receipt: at("broken"),
      ...{ valid: false, verdict: "invalid", withheld_by: null },
      checks: [{ name: "format", ok: false, detail: expect.stringMatching(`^${at("broken")}: Malformed JSON`) }],
      signed: null,
      ...NOTHING,
    });
  });
});

describe("verify --composite", () => {
  test("has what the signer signed", async () => {
    const there = ["--server", service.url];
    const title = ["--title", "Both", "--out", at("both.json")];
    await cairnlog(["composite", "assemble", at("one"), at("two"), ...title, ...there]);
    await cairnlog(["composite", "compile", at("both.json"), "--out", at("both"), ...there]);
    expect(await attest(at("both"), "--manifest")).toMatchObject({ code: 0, stderr: "" });
    const parts = [at("one"), at("two"), "--composite", "--attestation", at("both.attestation.json")];
    const { code, stdout } = await verify(...parts);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      files: [at("one"), at("two")],
      receipt: at("both.attestation.json"),
      ...{ valid: true, verdict: "valid", withheld_by: null },
      checks: expect.arrayContaining([
        { name: "file", ok: true, detail: "The files are the parts of the document, in their order." },
      ]),
      signed: { attestation_type: true, intent_statement: true },
      ...SUMMARY,
    });
  });

  test("of files that are not there is an error", async () => {
    for (const [part, bundle] of [
      ["none", "one.attestation.json"],
      ["one", "none.attestation.json"],
    ] as const)
      expect(await verify(at(part), "--composite", "--attestation", at(bundle))).toEqual({
        code: 1,
        stdout: "",
        stderr: expect.stringMatching(/^cairnlog: There is no file .*none[^\n]*\n$/),
      });
  });

  test("needs the attestation", async () => {
    expect(await verify(at("one"), "--composite")).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^cairnlog: --attestation is missing\n/),
    });
  });
});

describe("attest", () => {
  test("takes files for its own by the end of their names", async () => {
    const papers = temporaryFolder();
    const names = ["a.attestation.json", "a.attestation.json.new", "b.attestation.json.txt", "c.attestation-json"];
    for (const name of names) writeFileSync(join(papers, name), name);
    const { code, stdout } = await attest(papers, "--json");
    expect(code).toBe(0);
    const files = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).file);
    expect(files).toEqual(names.slice(2).map((name) => join(papers, name)));
  });

  test.each([
    [{}, ". The signer signed neither type nor statement: both are the log's word."],
    [{ attestation_type: "authorship" }, ". The signer signed the type; the statement is the log's word."],
    [{ intent_statement: null }, ". The signer signed the statement; the type is the log's word."],
    [{ attestation_type: "authorship", intent_statement: null }, ""],
  ])("says what of %j the signer did not sign", async (members, words) => {
    const { manifest, attestation } = JSON.parse(readFileSync(at("one.attestation.json"), "utf8"));
    // The signature of an attestation that is in it covers the document as it is.
    const document = { ...newManifest().document, ...members };
    writeFileSync(at("signed.json"), JSON.stringify({ ...manifest, document, attestations: [attestation] }));
    const { code, stdout } = await attest(at("signed.json"), "--manifest");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\S+signed\.json: entry \d+, /);
    // Each case is another attestation, whose receipt has another number.
    const end = stdout
      .replace(/^\S+: entry \d+, /, "")
      .replace(/\.attestation(\.\d+)?\.json, attestation [0-9a-f-]+/, "");
    expect(end).toBe(`${at("signed.json")}${words}\n`);
  });

  test("keeps a receipt that people can read", async () => {
    const text = readFileSync(at("one.attestation.json"), "utf8");
    expect(text).toBe(`${JSON.stringify(JSON.parse(text), null, 2)}\n`);
  });

  test("with a passphrase or a password from a file that is empty is refused before anything is sent", async () => {
    writeFileSync(at("empty"), "");
    expect(await attest(at("two"), "--password-file", at("empty"))).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(`^cairnlog: ${at("empty")} is empty\n`),
    });
  });
});

test("monitor tells of a log that was handed over, and accuses nobody", async () => {
  const [from, toPem] = [operatorKey(generatePrivateKey("ed25519")), generatePrivateKey("ed25519")];
  const to = operatorKey(toPem);
  const dataDir = temporaryFolder();
  const path = join(dataDir, "log");
  const log = await openLog({ path, signer: from, projection });
  await log.append(anyEvent());
  await log.close();
  await rotateOperatorKey({ path, from, to, projection });
  writeFileSync(join(dataDir, "operator.pem"), toPem, { mode: 0o600 });
  const { url } = await startTestService({ SERVICE_DATA_DIR: dataDir });
  writeFileSync(at("old.pub.pem"), from.public.pem);
  const monitor = (...more: string[]) =>
    cairnlog(["monitor", url, "--state", temporaryFolder(), "--operator-key", at("old.pub.pem"), "--once", ...more]);
  const { code, stdout, stderr } = await monitor("--json");
  expect(code).toBe(0);
  const [alarm, verified] = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const { timestamp } = alarm.entry;
  const detail = `Entry 2 (${timestamp}) hands the log from operator key ${from.fingerprint} to ${to.fingerprint}.`;
  expect(alarm).toEqual({
    alarm: "rotated",
    detail,
    entry: expect.objectContaining({ id: 2, payload: expect.objectContaining({ fingerprint: to.fingerprint }) }),
    server: url,
    observed_at: expect.stringMatching(/^\d{4}-.*Z$/),
    head: expect.anything(),
  });
  expect(verified).toMatchObject({ verified: 2 });
  expect(stderr).toBe(`NOTICE rotated: ${detail}\n`);
  expect(await monitor()).toMatchObject({ code: 0, stderr: `NOTICE rotated: ${detail}\n` });
});

test("what is no error is printed as it is", async () => {
  const load = vi.spyOn(COMMANDS.keygen!, "load").mockRejectedValueOnce("no error");
  expect(await cairnlog(["keygen"])).toEqual({ code: 1, stdout: "", stderr: "cairnlog: no error\n" });
  load.mockRestore();
});

test("keygen makes an Ed25519 key unless it is told otherwise", async () => {
  const made = await cairnlog(["keygen", "--out", at("made.pem"), "--json"]);
  expect(JSON.parse(made.stdout)).toEqual({
    file: at("made.pem"),
    algorithm: "ed25519",
    fingerprint: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
  });
});

test("serve says how long it takes to end at most", () => {
  expect(serve.about).toContain("SERVICE_STOP_TIMEOUT_S seconds");
});

describe("bench", () => {
  test.each(["SIGINT", "SIGTERM"] as const)("interrupted by %s ends with 1, and removes its log", async (signal) => {
    const where = temporaryFolder();
    const child = spawn(process.execPath, [MAIN, "bench", "--seconds", "3", "--dir", where], { stdio: "ignore" });
    const ended = once(child, "exit");
    /** Resolves when there is something in a folder, or the command has ended. */
    const filled = async (path: string) => {
      const watcher = watch(path);
      if (!readdirSync(path).length) await Promise.race([once(watcher, "change"), ended]);
      watcher.close();
      return readdirSync(path);
    };
    try {
      const [name] = await filled(where);
      // The signatures are measured by then, and the log is made.
      await filled(join(where, name!));
      child.kill(signal);
      expect(await ended).toEqual([1, null]);
    } finally {
      child.kill("SIGKILL");
    }
    expect(readdirSync(where)).toEqual([]);
  });

  test("listens for no signal when it is done", async () => {
    const listeners = () => ["SIGINT", "SIGTERM"].map((signal) => process.listenerCount(signal));
    const before = listeners();
    expect(await cairnlog(["bench", "--seconds", "1", "--json"])).toMatchObject({ code: 0, stderr: "" });
    expect(listeners()).toEqual(before);
    rmSync(at("empty"), { force: true });
  });
});

describe("what comes from standard input", () => {
  async function withInput(input: string, ...args: string[]) {
    const child = spawn(process.execPath, [MAIN, ...args, "--server", "http://127.0.0.1:10", "--state", at("state")], {
      stdio: ["pipe", "ignore", "pipe"],
    });
    let stderr = "";
    child.stderr.on("data", (text) => {
      stderr += text;
    });
    child.stdin.end(input);
    const [code] = await once(child, "close");
    return { code, stderr };
  }

  test("is a key", async () => {
    const { code, stderr } = await withInput(newSigner().privateKey, "login", "--key", "-");
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^cairnlog: No service answers at /) });
  });

  test("is named when it is no object, or no secret", async () => {
    expect(await withInput("[]", "trust", "create", "-", "--key", at("me.pem"))).toEqual({
      code: 1,
      stderr: "cairnlog: Standard input must hold a JSON object in UTF-8.\n",
    });
    expect(await withInput("\n", "login", "--key", at("me.pem"), "--password-file", "-")).toEqual({
      code: 2,
      stderr: "cairnlog: standard input is empty\nTry: cairnlog login --help\n",
    });
  });
});
