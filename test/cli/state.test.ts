/** The files that the command keeps between two runs: their names, their content, and what becomes of damaged ones. */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { StateFolder } from "#cairnlog/server/cli/connection/state.js";
import { temporaryFolder } from "../server/harness.js";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

const SERVER = "http://127.0.0.1:8080";
const stateOf = (server = SERVER, folder = temporaryFolder()) => new StateFolder(server, folder);

describe("the folder", () => {
  test("is the named one, or cairnlog in the folder for configuration", () => {
    const folder = temporaryFolder();
    vi.stubEnv("XDG_CONFIG_HOME", folder);
    expect(new StateFolder(SERVER).path).toBe(join(folder, "cairnlog"));
    expect(new StateFolder(SERVER, "here").path).toBe(join(process.cwd(), "here"));
    for (const unset of ["", undefined]) {
      vi.stubEnv("XDG_CONFIG_HOME", unset);
      expect(new StateFolder(SERVER).path).toBe(join(homedir(), ".config", "cairnlog"));
    }
  });
});

describe("the files of a service", () => {
  const fileOf = (server: string) => basename(new StateFolder(server, "x").memoryFile);

  test.each([
    ["http://127.0.0.1:8080", /^127\.0\.0\.1_8080-[0-9a-f]{12}\.log\.json$/],
    ["https://log.example-one.org", /^log\.example-one\.org-[0-9a-f]{12}\.log\.json$/],
    ["http://[::1]:80/a", /^___1_-[0-9a-f]{12}\.log\.json$/],
  ])("of %s have its host in their names", (server, name) => {
    expect(fileOf(server)).toMatch(name);
  });

  test.each(["/", "//", "/api/v1", "/api/v1/", "/api/v1//"])("are the same for its address with %s", (end) => {
    for (const server of [SERVER, `${SERVER}/api/v1/mirror`, `${SERVER}//twice`])
      expect(fileOf(server + end)).toBe(fileOf(server));
  });

  test("are others than those of another path, host or scheme", () => {
    const addresses = ["", "/one", "/two", "/api/v1/one", "//one"].map((path) => SERVER + path);
    const names = [...addresses, "https://127.0.0.1:8080", "http://127.0.0.1:8081"].map(fileOf);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("the session", () => {
  const session = (expires_at: string) => ({
    token: "a.b.c",
    fingerprint: `sha256:${"a".repeat(64)}`,
    pseudonym: "Ada",
    expires_at,
  });

  test("is kept until it expires", () => {
    const state = stateOf();
    expect(state.loadSession()).toBeUndefined();
    const expires = Date.parse("2030-01-01T00:00:00.000Z");
    const file = state.saveSession(session("2030-01-01T00:00:00.000000Z"));
    expect(basename(file)).toBe(basename(state.memoryFile).replace("log.json", "session.json"));
    vi.useFakeTimers({ toFake: ["Date"], now: expires - 1 });
    expect(state.loadSession()).toEqual(session("2030-01-01T00:00:00.000000Z"));
    for (const after of [0, 1]) {
      vi.setSystemTime(expires + after);
      expect(state.loadSession()).toBeUndefined();
    }
  });

  test("that is damaged is named", () => {
    const state = stateOf();
    const file = state.saveSession(session("2030-01-01T00:00:00.000000Z"));
    for (const content of ["", "{", "{}", "null", "7"]) {
      writeFileSync(file, content);
      expect(() => state.loadSession()).toThrow(
        expect.objectContaining({ code: "invalid-input", message: expect.stringContaining(`${file} is damaged. `) }),
      );
    }
  });
});

describe("what is known of the log", () => {
  const known = { operator_key: "PEM", head: null };

  test("is nothing at first, and then what was saved last", async () => {
    const { store, memoryFile } = stateOf();
    expect(await store.load()).toBeUndefined();
    await store.save(known);
    await store.save({ ...known, operator_key: "another PEM" });
    expect(await store.load()).toEqual({ ...known, operator_key: "another PEM" });
    expect(JSON.parse(readFileSync(memoryFile, "utf8"))).toEqual({ ...known, operator_key: "another PEM" });
    expect(readdirSync(dirname(memoryFile))).toEqual([basename(memoryFile)]);
    expect(statSync(memoryFile).mode & 0o777).toBe(0o600);
  });

  test("is not replaced by nothing if its file is damaged", async () => {
    const { store, memoryFile } = stateOf();
    await store.save(known);
    for (const content of ["", "{", "{}", "null", '{"operator_key": 1}']) {
      writeFileSync(memoryFile, content);
      await expect(store.load()).rejects.toMatchObject({
        code: "invalid-input",
        message: expect.stringContaining(`${memoryFile} is damaged. `),
      });
    }
  });

  test("is no file of another service in the same folder", async () => {
    const folder = temporaryFolder();
    await stateOf(SERVER, folder).store.save(known);
    expect(await stateOf("http://127.0.0.1:8081", folder).store.load()).toBeUndefined();
  });
});

test("each piece of evidence has a file of its own, which only its owner can read", () => {
  const state = new StateFolder(SERVER, join(temporaryFolder(), "new/folder"));
  const evidence = { operatorKey: "PEM", operators: [], known: null, shown: null, proof: null, entry: null };
  const files = [1, 2].map(() => state.saveEvidence(evidence));
  expect(new Set(files).size).toBe(2);
  const prefix = basename(state.memoryFile).replace("log.json", "");
  for (const file of files) {
    expect(basename(file).replace(prefix, "")).toMatch(/^evidence-[0-9a-f-]{36}\.json$/);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(evidence);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  }
  expect(statSync(state.path).mode & 0o777).toBe(0o700);
});
