/** The pinned operator key: compared before anything is sent, forgotten on demand, and what became of an answer that is refused. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { anyEvent } from "../anyevent.js";
import { LyingProxy } from "../client/proxy.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { cairnlog } from "./harness.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
const signer = newSigner();
const other = newSigner();
let service: TestService;
let stranger: TestService;
let proxy: LyingProxy;
let state: string;
let homes = 0;

beforeAll(async () => {
  [service, stranger] = [await startTestService(), await startTestService()];
  await stranger.server.registry.log.append(anyEvent());
  writeFileSync(at("me.pem"), signer.privateKey, { mode: 0o600 });
  writeFileSync(at("note.txt"), "A note");
  mkdirSync(at("papers"));
  for (const name of ["a", "b", "c"]) writeFileSync(at(`papers/${name}`), `Paper ${name}`);
});

/** A user who has used the service through the proxy. */
beforeEach(async () => {
  proxy = await LyingProxy.before(service.url);
  state = at(`state-${homes++}`);
  expect((await run("log", "tail")).code).toBe(0);
});

const run = (...args: string[]) => cairnlog([...args, "--server", proxy.url, "--state", state]);
const signed = (...args: string[]) => run(...args, "--key", at("me.pem"), "--as", service.url);
const fingerprintOf = async (of: TestService) => (await of.get("/log/operator-key")).body.fingerprint as string;
const lastKept = () => readdirSync(state).filter((name) => name.endsWith(".log.json"));

describe("a log with another operator key than the pinned one", () => {
  beforeEach(() => {
    proxy.upstream = stranger.url;
    proxy.asked.length = 0;
  });

  test.each([
    ["attest", [at("note.txt")]],
    ["attest", [at("papers")]],
    ["register", ["--pseudonym", "Ada"]],
    ["revoke", ["--yes"]],
    ["login", []],
    ["endorse", ["offer", other.fingerprint, "--category", "human"]],
    ["request", [other.fingerprint, "--type", "peer_review", "--intent", "Please."]],
  ] as const)("%s %j sends nothing to it", async (command, args) => {
    const { code, stdout, stderr } = await signed(command, ...args);
    expect({ code, stdout }, stderr).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("shows another operator key");
    expect(proxy.asked.length).toBeGreaterThan(0);
    expect(proxy.asked.filter((request) => !request.startsWith("GET "))).toEqual([]);
    expect(await stranger.entryCount()).toBe(1);
  });

  test("gets no session either", async () => {
    proxy.upstream = service.url;
    expect((await signed("register", "--pseudonym", "Ada")).code).toBe(0);
    expect((await signed("login")).code).toBe(0);
    expect((await run("inbox", "list")).code).toBe(0);
    proxy.upstream = stranger.url;
    proxy.asked.length = 0;
    const { code, stderr } = await run("inbox", "list");
    expect([code, stderr]).toEqual([1, expect.stringContaining("shows another operator key")]);
    expect(proxy.asked).toEqual(["GET /log/operator-key"]);
  });

  test("is said with both keys, what it can mean, and what to do, by commands that read, too", async () => {
    for (const command of [signed("attest", at("note.txt")), run("log", "head")]) {
      const { code, stderr } = await command;
      expect(code).toBe(1);
      for (const of of [service, stranger]) expect(stderr).toContain(await fingerprintOf(of));
      expect(stderr).toMatch(/made anew at this address/);
      expect(stderr).toMatch(/another log/);
      expect(stderr).toMatch(/in its place/);
      expect(stderr).toContain(`cairnlog config forget ${proxy.url} --state ${state}`);
      expect(stderr).not.toMatch(/evidence|misbehav/);
    }
  });

  test("is believed after config forget, which says what it forgot", async () => {
    const forgotten = await cairnlog(["config", "forget", `${proxy.url}/`, "--state", state]);
    expect(forgotten).toMatchObject({ code: 0, stderr: "" });
    expect(forgotten.stdout).toContain(await fingerprintOf(service));
    expect(lastKept()).toEqual([]);
    const registered = await run("register", "--pseudonym", "Ada", "--key", at("me.pem"), "--as", stranger.url);
    expect(registered).toMatchObject({ code: 0 });
    expect(await stranger.entryCount()).toBe(2);
  });
});

describe("config forget", () => {
  test("forgets the key that was set, the pinned one and the session, and keeps the user's own key", async () => {
    const home = { XDG_CONFIG_HOME: at(`home-${homes++}`) };
    const config = (...args: string[]) => cairnlog(["config", ...args], home);
    writeFileSync(at("operator.pub.pem"), (await service.get("/log/operator-key")).body.public_key);
    for (const [name, file] of [
      ["operator-key", "operator.pub.pem"],
      ["key", "me.pem"],
    ] as const)
      expect((await config("set", name, at(file), "--server", service.url)).code).toBe(0);
    expect((await cairnlog(["log", "tail", "--server", service.url], home)).code).toBe(0);
    const told = await config("forget", service.url, "--json");
    expect(JSON.parse(told.stdout)).toMatchObject({
      server: service.url,
      forgotten: { operator_fingerprint: await fingerprintOf(service) },
    });
    const { services } = JSON.parse((await config("show", "--server", service.url, "--json")).stdout);
    expect(services).toMatchObject([{ key: at("me.pem"), operator_fingerprint: null }]);
    expect(await config("forget", service.url)).toMatchObject({ code: 0, stdout: expect.stringMatching(/nothing/) });
    expect(await config("forget")).toMatchObject({ code: 2 });
    expect(await config("forget", "nowhere")).toMatchObject({ code: 2 });
  });
});

describe("an answer that is refused after the entry was recorded", () => {
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  type Any = any;
  const wrong = (receipt: Any) => ({ ...receipt, entry_hash: "0".repeat(64) });

  test("is kept beside the document, unverified, and a sentence says so", async () => {
    const file = at("kept.txt");
    writeFileSync(file, "Kept");
    proxy.lie = (path, answer) => (path === "/attestations" ? wrong(answer) : answer);
    const { code, stdout, stderr } = await signed("attest", file, "--pseudonym", "Ada");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    const path = `${file}.attestation.unverified.json`;
    const entry = await service.entryCount();
    expect(stderr).toContain(
      `The service says that ${file} is recorded as entry ${entry}. That answer is not verified; it is kept in ${path}.`,
    );
    const kept = JSON.parse(readFileSync(path, "utf8"));
    expect(kept).toMatchObject({ server: proxy.url, answer: { log_entry_id: entry, entry_hash: "0".repeat(64) } });
    expect(kept.manifest.document.title).toBe("kept.txt");
    expect(existsSync(`${file}.attestation.json`)).toBe(false);

    // It is no receipt and no document, and a true answer comes beside it.
    expect((await run("verify", file)).code).toBe(1);
    proxy.repent();
    expect((await signed("attest", file)).code).toBe(0);
    expect((await run("verify", file)).code).toBe(0);
    expect(existsSync(path)).toBe(true);
  });

  test("of a directory is kept beside each file whose receipt did not come", async () => {
    const papers = temporaryFolder();
    for (const name of ["a", "b", "c"]) writeFileSync(join(papers, name), `${name} in ${papers}`);
    proxy.lie = (path, answer) =>
      path === "/attestations/batch"
        ? {
            results: answer.results.map((result: Any, i: number) =>
              i === 1 ? { ...result, receipt: wrong(result.receipt) } : result,
            ),
          }
        : answer;
    const run = await signed("attest", papers, "--pseudonym", "Ada");
    expect(run.code, run.stderr).toBe(1);
    const names = readdirSync(papers).filter((name) => name.includes("unverified"));
    expect(names).toEqual(["a", "b", "c"].map((name) => `${name}.attestation.unverified.json`));
    for (const name of names) {
      expect(run.stderr).toContain(join(papers, name));
      const { manifest } = JSON.parse(readFileSync(join(papers, name), "utf8"));
      expect(manifest.document.title).toBe(name[0]);
    }
    proxy.repent();
    const again = await signed("attest", papers);
    expect(again).toMatchObject({ code: 0, stderr: "Attesting 3 files.\n" });
  });

  test("is kept with what shows a title that the log does not have", async () => {
    const file = at("private.txt");
    writeFileSync(file, "Private");
    proxy.lie = (path, answer) => (path === "/attestations" ? wrong(answer) : answer);
    const { code } = await signed("attest", file, "--title", "Merger", "--private-title", "--pseudonym", "Ada");
    expect(code).toBe(1);
    const kept = JSON.parse(readFileSync(`${file}.attestation.unverified.json`, "utf8"));
    expect(kept.private_title).toMatchObject({ title: "Merger", salt: expect.any(String) });
    proxy.repent();
  });

  test("because the service fell silent, too", async () => {
    const file = at("silent.txt");
    writeFileSync(file, "Silent");
    let isSent = false;
    proxy.seize = (path, response) => {
      if (path === "/attestations") isSent = true;
      else if (isSent) response.destroy();
      return isSent && path !== "/attestations";
    };
    const { code, stderr } = await signed("attest", file, "--pseudonym", "Ada");
    expect([code, stderr]).toEqual([1, expect.stringContaining(`it is kept in ${file}.attestation.unverified.json`)]);
  });
});

describe("the log of a demonstration", () => {
  test("is not pinned, which is said: the next one at this address is believed", async () => {
    const demo = await startTestService({ SERVICE_OPERATOR_NAME: "cairnlog demo" });
    proxy = await LyingProxy.before(demo.url);
    state = at(`state-${homes++}`);
    const first = await run("log", "tail");
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining("is a demonstration") });
    expect(existsSync(state) ? lastKept() : []).toEqual([]);
    proxy.upstream = (await startTestService({ SERVICE_OPERATOR_NAME: "cairnlog demo" })).url;
    expect(await run("log", "tail")).toMatchObject({ code: 0, stderr: expect.stringContaining("is a demonstration") });
  });

  test("at an address whose log was pinned before is another log, also while it is empty", async () => {
    proxy.upstream = (await startTestService({ SERVICE_OPERATOR_NAME: "cairnlog demo" })).url;
    expect(await run("log", "head")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("shows another operator key"),
    });
  });
});
