/** Exit codes of commands that succeed only in part. */

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { VERSION } from "#cairnlog/server/process/version.js";
import { anyEvent } from "../anyevent.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { cairnlog as spawned } from "../service.js";
import { begin, cairnlog, interrupt, pin } from "./harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
const operatorPem = at("data/operator.pub.pem");
let service: TestService;
beforeAll(async () => {
  service = await startTestService({ SERVICE_DATA_DIR: at("data") });
  await pin(service.url);
  writeFileSync(at("me.pem"), newSigner().privateKey);
  for (const name of ["one", "two", "three", "changed"]) writeFileSync(at(name), `This is ${name}.`);
  const attested = await attest("one", "two", "three", "changed");
  expect(attested).toMatchObject({ code: 0, stderr: "" });
  writeFileSync(at("changed"), "This is another.");
});

const files = (names: readonly string[]) => names.map((name) => (name.startsWith("-") ? name : at(name)));
const attest = (...names: string[]) =>
  cairnlog(["attest", ...files(names), "--key", at("me.pem"), "--server", service.url]);
const verify = (...names: string[]) => cairnlog(["verify", ...files(names), "--operator-key", operatorPem]);
const log = (...args: string[]) => cairnlog(["log", ...args, "--server", service.url]);

test("attest gives one file a title, and refuses to give it to several", async () => {
  writeFileSync(at("titled"), "This has a title.");
  expect(await attest("titled", "--title=A title")).toMatchObject({ code: 0, stderr: "" });
  const { manifest } = JSON.parse(readFileSync(at("titled.attestation.json"), "utf8"));
  expect(manifest.document).toMatchObject({ title: "A title" });
  expect(await attest("one", "two", "--title=A title")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--title goes with one FILE"),
  });
  expect(JSON.parse(readFileSync(at("one.attestation.json"), "utf8")).manifest.document).toMatchObject({
    title: "one",
  });
});

describe("verify", () => {
  test.each([
    [["one"], 0],
    [["changed"], 1],
    [["one", "two", "three"], 0],
    [["changed", "one"], 1],
    [["one", "changed"], 1],
    [["one", "changed", "two"], 1],
    [["changed", "changed"], 1],
    [["one", "missing", "two"], 1],
    [["missing", "one"], 1],
  ])("%j: %d, and a verdict on each", async (names, code) => {
    const run = await verify(...names);
    expect(run).toMatchObject({ code, stderr: "" });
    const verdicts = run.stdout.match(/^\S.*$/gm);
    expect(verdicts).toEqual(
      names.map((name) => `${at(name)}: ${/changed|missing/.test(name) ? "NOT verified" : "verified"}`),
    );
    const asJson = await verify(...names, "--json");
    expect(asJson.code).toBe(code);
    const lines = asJson.stdout.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toMatchObject(
      names.map((name) => ({ file: at(name), valid: !/changed|missing/.test(name) })),
    );
  });

  test("1: a file without its attestation is not verified, and the next one is", async () => {
    writeFileSync(at("never"), "This was never attested.");
    const { code, stdout } = await verify("never", "one");
    expect(code).toBe(1);
    expect(stdout).toMatch(/^\S+never: NOT verified\n {2}WRONG {2}format: There is no file .*\n\S+one: verified\n/);
  });

  test("1: without the operator key nothing can be verified", async () => {
    const run = await cairnlog(["verify", at("one"), "--operator-key", at("none.pem")]);
    expect(run).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^cairnlog: There is no file .*none\.pem \(ENOENT\)\.\n$/),
    });
    writeFileSync(at("no.pem"), "no key");
    expect(await cairnlog(["verify", at("one"), "--operator-key", at("no.pem")])).toMatchObject({
      code: 1,
      stdout: "",
    });
  });

  test("2: one attestation for several files", async () => {
    expect(await verify("one", "two", "--attestation", "x")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--attestation and --proof go with one FILE"),
    });
  });
});

describe("attest", () => {
  test("0: files that were attested before are attested again", async () => {
    const { code, stdout } = await attest("one", "two");
    expect(code).toBe(0);
    expect(stdout.match(/ \(recorded before\), /g)).toHaveLength(2);
  });

  test("1: a missing file is reported, and the others are attested", async () => {
    writeFileSync(at("before"), "before");
    writeFileSync(at("after"), "after");
    const { code, stdout, stderr } = await attest("before", "missing", "after");
    expect(code).toBe(1);
    expect(stdout).toMatch(/^\S+before: entry \d+, .*\n\S+after: entry \d+, .*\n$/);
    expect(stderr).toMatch(/^cairnlog: There is no file .*missing \(ENOENT\)\.\n1 of 3 files are not attested\.\n$/);
    expect([existsSync(at("before.attestation.json")), existsSync(at("after.attestation.json"))]).toEqual([true, true]);
  });

  test("1: a receipt that cannot be kept", async () => {
    writeFileSync(at("blocked"), "blocked");
    mkdirSync(at("blocked.attestation.json"));
    expect(await attest("blocked")).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(/EISDIR/) });
  });

  test.each([
    [["one", "two", "--title", "Both"], "--title goes with one FILE"],
    [["object", "--title", "Both", "--manifest"], "a manifest has its own title"],
  ])("2: %j", async (names, sentence) => {
    const args = names.map((name) => (/^(one|two|object)$/.test(name) ? at(name) : name));
    const run = await cairnlog(["attest", ...args, "--key", at("me.pem"), "--server", service.url]);
    expect(run).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(sentence) });
  });
});

describe("log", () => {
  test("show: 1 when one of the entries is not there; those before it are shown", async () => {
    expect(await log("show", "1", "2", "--json")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^.*\n.*\n$/),
    });
    const { code, stdout } = await log("show", "1", "999", "2", "--json");
    expect({ code, id: JSON.parse(stdout).id }).toEqual({ code: 1, id: 1 });
  });

  test("head: 0 for a log without one", async () => {
    const empty = await startTestService();
    await pin(empty.url);
    const head = (...more: string[]) => cairnlog(["log", "head", "--server", empty.url, ...more]);
    expect(await head()).toEqual({ code: 0, stdout: "The log is empty.\n", stderr: "" });
    expect(await head("--json")).toEqual({ code: 0, stdout: "null\n", stderr: "" });
  });

  test("verify: 0 if the service reports a valid log, 1 if it reports errors", async () => {
    const proxy = await LyingProxy.before(service.url);
    await pin(proxy.url);
    const ask = () => cairnlog(["log", "verify", "--server", proxy.url]);
    expect((await ask()).code).toBe(0);
    const told = { id: 1, tree_size: null, code: "some-code", message: "A sentence." };
    proxy.lie = (path, answer) => (path === "/log/verify" ? { ...answer, warnings: [told] } : answer);
    expect(await ask()).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/, valid\nsome-code: A sentence\.\n$/),
    });
    proxy.lie = (path, answer) => (path === "/log/verify" ? { ...answer, valid: false, errors: [told] } : answer);
    expect(await ask()).toMatchObject({ code: 1, stdout: expect.stringContaining(", NOT valid\nsome-code") });
  });

  const noRoot = { root_hash: "0".repeat(64) };
  // biome-ignore lint/suspicious/noExplicitAny: lies are told about answers of every shape
  test.each<[path: string, args: string[], lie: (answer: any) => unknown]>([
    ["/log/sth", ["head"], (head) => ({ ...head, ...noRoot })],
    ["/log/sth/1", ["head", "--tree-size", "1"], (head) => ({ ...head, ...noRoot })],
    ["/log/1", ["show", "1"], (entry) => ({ ...entry, payload: {} })],
    ["/log/consistency?from=1&to=2&tree_version=2", ["consistency", "1", "2"], (proof) => ({ ...proof, peaks: [] })],
    ["/log/proof/0", ["proof", "0"], (proof) => ({ ...proof, audit_path: [] })],
    ["/log/checkpoint", ["checkpoint"], (note) => note.replace(/\n\d+\n/, "\n1\n")],
  ])("1: what %s answers does not hold", async (path, args, lie) => {
    const proxy = await LyingProxy.before(service.url);
    await pin(proxy.url);
    const ask = () => cairnlog(["log", ...args, "--server", proxy.url]);
    expect((await ask()).code).toBe(0);
    proxy.lie = (asked, answer) => (asked === path ? lie(answer) : answer);
    const { code, stdout, stderr } = await ask();
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^cairnlog: .* The evidence is in \S+; keep it\./);
  });

  test.each(["SIGINT", "SIGTERM"] as const)(
    "tail --follow: 0 when it is interrupted by %s, 1 when the log lies",
    async (signal) => {
      const proxy = await LyingProxy.before(service.url);
      await pin(proxy.url);
      const follow = () => begin(["log", "tail", "-n", "1", "--follow", "--interval", "1", "--server", proxy.url]);
      const first = follow();
      await first.prints(/\n/);
      await interrupt(signal);
      expect(await first.ended).toMatchObject({ code: 0, stderr: "" });
      const second = follow();
      await second.prints(/\n/);
      proxy.lie = (path, answer) => (path === "/log/sth" ? { ...answer, root_hash: "0".repeat(64) } : answer);
      expect(await second.ended).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("not signed by the pinned"),
      });
    },
  );
});

test("log tail --follow asks again after the seconds of --interval, and not before", async () => {
  const run = begin(["log", "tail", "-n", "1", "--follow", "--interval", "3600", "--server", service.url]);
  await run.prints(/\n.+\n/);
  const shown = run.stdout;
  await service.server.registry.log.append(anyEvent({ after: "an hour" }));
  // Another command sees the entry meanwhile.
  expect((await log("tail", "-n", "1", "--json")).stdout).toContain('"after":"an hour"');
  await interrupt();
  expect(await run.ended).toEqual({ code: 0, stdout: shown, stderr: "" });
});

describe("log tail --follow goes on", () => {
  const problem = (status: number) => ({
    ...{ type: "about:blank", title: "No", status, code: "overloaded", detail: `It is ${status}.` },
  });
  async function follow(status: number | null) {
    const proxy = await LyingProxy.before(service.url);
    await pin(proxy.url);
    const run = begin(["log", "tail", "-n", "1", "--follow", "--json", "--interval", "1", "--server", proxy.url]);
    await run.prints(/\n/);
    proxy.seize = (_, response) => {
      proxy.seize = null;
      // A rate limit that lasts longer than the command waits.
      if (status === null) response.destroy();
      else
        response
          .writeHead(status, { "content-type": "application/problem+json", "retry-after": "61" })
          .end(JSON.stringify(problem(status)));
      return true;
    };
    return run;
  }

  test.each([
    [429, /^It is 429\.\n$/],
    [503, /^It is 503\.\n$/],
    [null, /^No service answers at .*\n$/],
  ])("after %s", async (status, said) => {
    const run = await follow(status);
    await run.prints(/\n/, "stderr");
    const shown = run.stdout;
    await service.server.registry.log.append(anyEvent({ after: status }));
    await run.prints(new RegExp(`"after":${status}\\b.*\n$`));
    await interrupt();
    const { code, stdout, stderr } = await run.ended;
    expect(code).toBe(0);
    expect(stdout.slice(shown.length).trimEnd().split("\n")).toHaveLength(1);
    expect(stderr).toMatch(said);
  });

  test.each([400, 403, 428, 430, 500, 502, 504])("not after %i", async (status) => {
    expect(await (await follow(status)).ended).toMatchObject({ code: 1, stderr: `cairnlog: It is ${status}.\n` });
  });
});

describe("export", () => {
  const out = at("log.ndjson");
  const exported = (...more: string[]) => cairnlog(["export", "--server", service.url, "--out", out, ...more]);

  test("1 when it fails on the way, and no part of a file is left", async () => {
    const proxy = await LyingProxy.before(service.url);
    await pin(proxy.url);
    proxy.seize = (_, response) => Boolean(response.writeHead(500).end('{"detail": "It is broken."}'));
    const run = await cairnlog(["export", "--server", proxy.url, "--out", out, "--format", "csv"]);
    expect(run).toEqual({ code: 1, stdout: "", stderr: "cairnlog: It is broken.\n" });
    expect(existsSync(out)).toBe(false);
    expect(await exported("--scope", "nothing")).toMatchObject({ code: 1, stdout: "" });
    expect(existsSync(out)).toBe(false);
  });

  test("0; and 1 if the file exists, which is not changed", async () => {
    expect(await exported()).toMatchObject({ code: 0, stdout: "" });
    const before = readFileSync(out, "utf8");
    expect(await exported()).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^cairnlog: .* exists already \(EEXIST\)/),
    });
    expect(readFileSync(out, "utf8")).toBe(before);
    expect((await cairnlog(["export", "--server", service.url, "--out", "-"])).stdout).toBe(before);
  });

  test("1 where a disk is full or nobody reads on: a sentence, not a crash", async () => {
    const { code, stderr } = await spawned(["export", "--server", service.url, "--out", at("none/log.ndjson")]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^cairnlog: There is no .* \(ENOENT\)\.\n$/),
    });
  });
});

describe("without a key and a session: 2", () => {
  const object = at("object.json");
  const fingerprint = `sha256:${"a".repeat(64)}`;
  beforeAll(() => writeFileSync(object, "{}"));
  test.each([
    ["revoke", ["--yes"]],
    ["request", [fingerprint, "--type", "authorship"]],
    ["respond", ["x", "decline"]],
    ["inbox list", []],
    ["inbox read", ["1"]],
    ["policy publish", [object, "--otherwise", "hold"]],
    ["trust create", [object]],
    ["trust revoke", []],
    ["anchor now", []],
    ["claim post", [object]],
    ["webhook add", ["--url", "https://example.org"]],
    ["webhook list", []],
    ["webhook remove", ["1"]],
  ])("%s %j", async (name, args) => {
    const run = await cairnlog([...name.split(" "), ...args, "--server", service.url, "--state", at("nobody")]);
    expect(run).toMatchObject({ code: 2, stdout: "" });
    const refusal = `cairnlog: --key is missing, and there is no session (cairnlog login)\nTry: cairnlog ${name} --help\n`;
    // Before it, some say that they have pinned the operator key of a service that they meet for the first time.
    expect(run.stderr.slice(-refusal.length)).toBe(refusal);
  });
});

describe("webhook listen", () => {
  const secret = ["--secret", "sixteen letters!"];

  test.each(["SIGINT", "SIGTERM"] as const)("0 when it is interrupted by %s", async (signal) => {
    const receiver = begin(["webhook", "listen", "--port", "0", ...secret]);
    await receiver.prints(/^listening on http:\/\/127\.0\.0\.1:\d+\n$/);
    await interrupt(signal);
    expect(await receiver.ended).toMatchObject({ code: 0, stderr: "" });
  });

  test("1 when it cannot listen", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as AddressInfo;
    const run = await cairnlog(["webhook", "listen", "--port", `${port}`, ...secret]);
    other.close();
    expect(run).toEqual({
      code: 1,
      stdout: "",
      stderr: `cairnlog: Cannot listen on 127.0.0.1 port ${port}: the port is in use, or the address is not this machine's.\n`,
    });
  });
});

test("keygen: 0; 2 where there is a file; 1 where none can be", async () => {
  const made = await cairnlog(["keygen", "--out", at("made.pem")]);
  expect(made).toMatchObject({ code: 0, stderr: "" });
  expect(made.stdout).toMatch(new RegExp(`^sha256:[0-9a-f]{64}\\n${at("made.pem")}\\n$`));
  expect(await cairnlog(["keygen", "--out", at("made.pem")])).toMatchObject({ code: 2, stdout: "" });
  expect(await cairnlog(["keygen", "--out", at("none/made.pem")])).toMatchObject({ code: 1, stdout: "" });
  const dsa = await cairnlog(["keygen", "--out", at("dsa.pem"), "--algorithm", "dsa"]);
  expect(dsa).toMatchObject({ code: 2, stderr: expect.stringMatching(/must be one of ed25519, ecdsa-p256, rsa-2048/) });
  rmSync(at("made.pem"));
});

test("bench: 2 for a time that is none, 1 for a folder that is not there", async () => {
  for (const seconds of ["0", "10000", "1.5", "", "x1", "1x"])
    expect(await cairnlog(["bench", "--seconds", seconds]), seconds).toMatchObject({ code: 2, stdout: "" });
  expect(await cairnlog(["bench", "surplus"])).toMatchObject({ code: 2, stdout: "" });
  expect(await cairnlog(["bench", "--seconds", "1", "--dir", at("none")])).toMatchObject({ code: 1, stdout: "" });
});

test("the process ends with the code of the command", async () => {
  expect(await spawned(["--version"])).toEqual({ code: 0, stdout: `${VERSION}\n`, stderr: "" });
  expect(await spawned(["verify", at("changed"), "--operator-key", operatorPem])).toMatchObject({
    code: 1,
    stderr: "",
  });
  expect(await spawned(["dance"])).toEqual({
    code: 2,
    stdout: "",
    stderr: "cairnlog: unknown command 'dance'\nTry: cairnlog --help\n",
  });
});
