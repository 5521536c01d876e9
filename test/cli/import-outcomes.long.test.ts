/** `cairnlog import`: its output and exit codes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { chain, type MadeEntry, type Wanted } from "../log/history/entries.js";
import { MAIN, scratchFolder, startService } from "../service.js";
import { cairnlog } from "./harness.js";

const folder = scratchFolder();
afterAll(() => folder.remove());
const at = (name: string) => join(folder.path, name);

function written(name: string, entries: readonly MadeEntry[]): string {
  writeFileSync(at(name), entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  return at(name);
}
const history = chain([...Array<Wanted>(2500).fill({}), ...Array<Wanted>(10).fill({ chain_version: 2 }), {}]);
const last = history.at(-1)!;

test("a file becomes a log that is served, exported as it was, and imported once only", async () => {
  const file = written("history.ndjson", history);
  const run = await cairnlog(["import", file, "--data", at("data"), "--json"]);
  expect(run).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(run.stdout)).toMatchObject({
    entry_count: 2511,
    last_id: last.id,
    last_hash: last.entry_hash,
    warnings: [{ line: 2511, id: 2511, code: "v1-after-v2" }],
    warning_count: 1,
    operator_fingerprint: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    data_dir: at("data"),
  });
  const service = await startService(at("data"));
  const again = await cairnlog(["import", file, "--data", at("data")]);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("already has 2511 entries") });
  const exported = await cairnlog(["export", "--server", service.url, "--out", at("again.ndjson")]);
  expect(exported.code).toBe(0);
  expect(readFileSync(at("again.ndjson"), "utf8")).toBe(readFileSync(file, "utf8"));
  const report = await (await fetch(`${service.url}/api/v1/log/verify`, { method: "POST" })).json();
  expect(report).toMatchObject({ valid: true, entry_count: 2511 });
  expect(await service.stop()).toBe(0);
});

test("standard input is read, SERVICE_DATA_DIR is heeded, and people get sentences", async () => {
  const env = { ...process.env, SERVICE_DATA_DIR: at("piped") };
  const child = spawn(process.execPath, [MAIN, "import", "-"], { env, stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(readFileSync(written("piped.ndjson", history)));
  let stdout = "";
  child.stdout.on("data", (data) => {
    stdout += data;
  });
  expect((await once(child, "exit"))[0]).toBe(0);
  expect(stdout).toContain("imported 2511 entries");
  expect(stdout).toContain(`last entry 2511, ${last.entry_hash}`);
  expect(stdout).toContain("warning: line 2511, entry 2511: A version 1 entry follows a version 2 entry.");
});

test("a refusal names the line and leaves nothing; wrong usage is 2", async () => {
  const file = written("bad.ndjson", [...history.slice(0, 1200), { ...history[1200]!, payload: {} }]);
  const run = await cairnlog(["import", file, "--data", at("bad")]);
  expect(run).toMatchObject({ code: 1, stdout: "" });
  expect(run.stderr).toBe(
    "cairnlog: Line 1201: The content does not hash to entry_hash (as chain version 1). Nothing was imported.\n",
  );
  expect(existsSync(at("bad/log"))).toBe(false);
  expect((await cairnlog(["import", "--data", at("bad")])).code).toBe(2);
  expect((await cairnlog(["import", "a", "b"])).code).toBe(2);
  expect((await cairnlog(["import", file, "--data", at("bad")], { PORT: "none" })).code).toBe(2);
  expect((await cairnlog(["import", "--help"])).stdout).toContain("Example:");
});

test("a file that cannot be read is named in one sentence, and leaves no data directory", async () => {
  mkdirSync(at("folder"));
  const socket = createServer().listen(at("socket"));
  await once(socket, "listening");
  for (const name of ["none.ndjson", "folder", "socket"]) {
    const run = await cairnlog(["import", at(name), "--data", at("unread")]);
    expect({ name, code: run.code }).toEqual({ name, code: 1 });
    expect(run.stderr).toMatch(new RegExp(`^cairnlog: .*${name}.*\\n$`));
    expect(existsSync(at("unread"))).toBe(false);
  }
  socket.close();
});

test("a service that has the empty log open is not robbed of it", async () => {
  const service = await startService(at("running"));
  const run = await cairnlog(["import", written("running.ndjson", history), "--data", at("running")]);
  expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining("has the log open. Stop the service first.") });
  expect(await (await fetch(`${service.url}/api/v1/log/head`)).json()).toEqual({ head: null, entry_count: 0 });
  expect(await service.stop()).toBe(0);
});
