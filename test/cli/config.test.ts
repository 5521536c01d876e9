/** What the command remembers: the service, the key of the user, and the operator key of each service. */
import { cpSync, linkSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { anyEvent } from "../anyevent.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { cairnlog } from "./harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
let service: TestService;
let other: TestService;
let homes = 0;

beforeAll(async () => {
  [service, other] = [await startTestService(), await startTestService()];
  for (const { server } of [service, other]) await server.registry.log.append(anyEvent());
  writeFileSync(at("me.pem"), newSigner().privateKey, { mode: 0o600 });
  writeFileSync(at("stranger.pub.pem"), newSigner().publicKey);
  writeFileSync(at("note.txt"), "A note");
});

/** A user who has told the command nothing yet. */
function newUser() {
  const home = at(`home-${homes++}`);
  const path = join(home, "cairnlog", "config.json");
  const run = (...args: string[]) => cairnlog(args, { XDG_CONFIG_HOME: home });
  const succeed = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args);
    expect({ code }, stderr).toEqual({ code: 0 });
    return { stdout, stderr };
  };
  return { run, succeed, path, home };
}

const operatorOf = async (of: TestService) => (await of.get("/log/operator-key")).body;

test("the server is remembered for commands without --server; CAIRNLOG_SERVER and --server go before it", async () => {
  const { run, succeed, path, home } = newUser();
  expect((await succeed("config", "set", "server", `${service.url}/`)).stdout).toBe(`server is ${service.url}\n`);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(join(home, "cairnlog")).mode & 0o777).toBe(0o700);
  await succeed("log", "tail");
  await succeed("export", "--out", "-");
  const nowhere = ["http://127.0.0.1:10", "http://127.0.0.1:8"] as const;
  const environment = { XDG_CONFIG_HOME: home, CAIRNLOG_SERVER: nowhere[0] };
  expect((await cairnlog(["log", "tail"], environment)).stderr).toContain(`No service answers at ${nowhere[0]}.`);
  expect((await run("log", "tail", "--server", nowhere[1])).stderr).toContain(`No service answers at ${nowhere[1]}.`);
  await succeed("config", "unset", "server");
  expect(await run("log", "tail")).toMatchObject({ code: 2, stderr: expect.stringContaining("--server is missing") });
});

test("several addresses of one service are remembered as a list, whose first one it is", async () => {
  const { run, succeed } = newUser();
  const list = `${service.url}/, ${other.url}/api/v1`;
  expect((await succeed("config", "set", "server", list)).stdout).toBe(`server is ${service.url},${other.url}\n`);
  await succeed("log", "tail");
  await succeed("export", "--out", "-");
  expect(JSON.parse((await succeed("config", "show", "--json")).stdout).server).toBe(`${service.url},${other.url}`);
  await succeed("config", "set", "key", at("me.pem"));
  expect((await succeed("config", "show", "--server", service.url)).stdout).toContain(at("me.pem"));
  for (const wrong of ["", ",", `${service.url},nowhere`])
    expect(await run("config", "set", "server", wrong)).toMatchObject({ code: 2 });
  expect(await run("log", "tail", "--server", `${service.url},nowhere`)).toMatchObject({ code: 2 });
  await succeed("log", "tail", "--server", `${service.url},${other.url}`);
});

test("a key is remembered for each service, and used by commands that sign", async () => {
  const { run, succeed } = newUser();
  await succeed("config", "set", "server", service.url);
  const attest = ["attest", at("note.txt"), "--pseudonym", "Ada"];
  expect(await run(...attest)).toMatchObject({ code: 2, stderr: expect.stringContaining("--key is missing") });
  expect((await succeed("config", "set", "key", at("me.pem"))).stdout).toBe(
    `key for ${service.url} is ${at("me.pem")}\n`,
  );
  await succeed(...attest);
  await succeed("inbox", "list");
  // It is not the key for another service.
  expect(await run(...attest, "--server", other.url)).toMatchObject({ code: 2 });
  expect(await run("config", "set", "key", at("note.txt"))).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("holds no private key"),
  });
  expect(await run("config", "set", "key", at("none.pem"))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("There is no file"),
  });
  await succeed("config", "unset", "key");
  expect(await run(...attest)).toMatchObject({ code: 2 });
});

test.each(["server", "key", "operator-key"])(
  "whoever forgets their %s keeps all else that is remembered",
  async (gone) => {
    const { succeed, path } = newUser();
    writeFileSync(at("operator.pub.pem"), (await operatorOf(service)).public_key);
    for (const server of [service.url, other.url])
      for (const set of [
        ["key", at("me.pem")],
        ["operator-key", at("operator.pub.pem")],
      ])
        await succeed("config", "set", ...set, "--server", server);
    await succeed("config", "set", "server", service.url);
    const before = JSON.parse(readFileSync(path, "utf8"));
    await succeed("config", "unset", gone);
    if (gone === "server") delete before.server;
    else delete before.services[service.url][gone.replace("-", "_")];
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual(before);
  },
);

describe("the operator key", () => {
  test("is pinned at the first use, which is said once, and verify goes by it", async () => {
    const { succeed } = newUser();
    const { fingerprint } = await operatorOf(service);
    await succeed("config", "set", "server", service.url);
    expect((await succeed("log", "tail")).stderr).toBe(
      `The operator key of ${service.url} is ${fingerprint}. It is pinned from now on; compare it with what the operator publishes elsewhere.\n`,
    );
    expect((await succeed("log", "tail")).stderr).toBe("");
    await succeed("attest", at("note.txt"), "--pseudonym", "Ada", "--key", at("me.pem"));
    const { stdout } = await succeed("verify", at("note.txt"));
    expect(stdout).toContain(`the log at ${service.url}, operator key ${fingerprint} (pinned when it was first seen)`);
    const shown = JSON.parse((await succeed("config", "show", "--json")).stdout);
    expect(shown).toMatchObject({
      server: service.url,
      services: [{ address: service.url, key: null, operator_fingerprint: fingerprint, operator_from: "first use" }],
    });
  });

  test("is refused when it changes, in a sentence: nothing of another log at that address is believed", async () => {
    const { run, succeed, home } = newUser();
    await succeed("log", "tail", "--server", service.url);
    const state = join(home, "cairnlog");
    const [known] = readdirSync(state).filter((name) => name.endsWith(".log.json"));
    await succeed("log", "tail", "--server", other.url);
    const [second] = readdirSync(state).filter((name) => name.endsWith(".log.json") && name !== known);
    cpSync(join(state, known!), join(state, second!));
    const { code, stdout, stderr } = await run("log", "tail", "--server", other.url);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^cairnlog: [A-Z][^\n]*"cairnlog config forget \S+" forgets the old one; [^\n]*\n$/);
    expect(stderr).toContain((await operatorOf(service)).fingerprint);
  });

  test("can be set before the first use, and then no other is believed", async () => {
    const { run, succeed } = newUser();
    const { fingerprint, public_key } = await operatorOf(service);
    writeFileSync(at("operator.pub.pem"), public_key);
    const set = ["config", "set", "operator-key", "--server", service.url];
    expect((await succeed(...set, at("operator.pub.pem"))).stdout).toBe(
      `operator-key for ${service.url} is ${fingerprint}\n`,
    );
    expect((await succeed("log", "tail", "--server", service.url)).stderr).toBe("");
    const { run: lied, succeed: set2 } = newUser();
    await set2(...set, at("stranger.pub.pem"));
    // Also where further nodes of the log are named.
    for (const server of [`${service.url},http://127.0.0.1:9`, service.url])
      expect(await lied("log", "head", "--server", server)).toMatchObject({ code: 1, stdout: "" });
    expect((await run("config", "show", "--server", service.url)).stdout).toContain(`${fingerprint} (set)`);
  });

  test("goes with all else that was kept of a log that is forgotten", async () => {
    const { succeed, path, home } = newUser();
    const server = ["--server", service.url];
    await succeed("attest", at("note.txt"), "--out", at("forgotten.json"), "--key", at("me.pem"), ...server);
    await succeed("login", "--key", at("me.pem"), ...server);
    await succeed("config", "set", "key", at("me.pem"), ...server);
    expect(readdirSync(join(home, "cairnlog"))).toHaveLength(3);
    await succeed("config", "forget", service.url);
    expect(readdirSync(join(home, "cairnlog"))).toEqual([basename(path)]);
  });

  test("is missing for verify where nothing was pinned", async () => {
    const { run } = newUser();
    expect(await run("verify", at("note.txt"))).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^cairnlog: --operator-key is missing: .* --server or cairnlog config /),
    });
    const { code, stderr } = await run("verify", at("note.txt"), "--server", service.url);
    const advice = `have it pinned by cairnlog log head --server ${service.url}`;
    expect([code, stderr.split("\n")[0]]).toEqual([
      2,
      `cairnlog: no operator key of ${service.url} is remembered yet: name it by --operator-key, or ${advice}`,
    ]);
  });
});

test("what is remembered is replaced whole: whoever has the file from before open reads that", async () => {
  const { succeed, path, home } = newUser();
  await succeed("config", "set", "server", service.url);
  await succeed("log", "tail");
  const folder = join(home, "cairnlog");
  const before = new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]));
  expect(before.size).toBe(2);
  for (const name of before.keys()) linkSync(join(folder, name), join(home, name));
  await service.server.registry.log.append(anyEvent());
  await succeed("log", "tail");
  await succeed("config", "set", "server", other.url);
  for (const [name, text] of before) {
    expect(readFileSync(join(home, name), "utf8")).toBe(text);
    expect(readFileSync(join(folder, name), "utf8")).not.toBe(text);
  }
  expect(readdirSync(folder).sort()).toEqual([...before.keys()].sort());
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("what is damaged is not overwritten, and unknown names are refused", async () => {
  const { run, path, home } = newUser();
  mkdirSync(join(home, "cairnlog"), { recursive: true });
  for (const damaged of ["{", "[]", '{"services": {"a": 1}}', '{"server": 1, "services": {}}']) {
    writeFileSync(path, damaged);
    const { code, stderr } = await run("config", "set", "server", service.url);
    expect({ code, stderr }).toEqual({ code: 1, stderr: `cairnlog: ${path} is damaged. Mend it, or move it away.\n` });
    expect(readFileSync(path, "utf8")).toBe(damaged);
  }
  for (const [args, sentence] of [
    [["set", "colour", "red"], "say which of server, key, operator-key"],
    [["set", "server"], "URL is missing"],
    [["set", "server", "nowhere"], "URL must be an address"],
    [["set", "server", service.url, "x"], "x is one argument too many"],
    [["unset", "server", "x"], "x is one argument too many"],
    [["show", "x"], "x is one argument too many"],
  ] as const)
    expect(await run("config", ...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(sentence) });
});
