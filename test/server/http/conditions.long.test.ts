/** The real service on a machine with faults or without free resources: a clear message each time, and nothing is lost. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { cairnlog, MAIN, scratchFolder, startService } from "../../service.js";
import { logsFile } from "../../witness/harness.js";
import { newTree } from "../../witness/logs.js";
import { type Acknowledged, attest } from "../attesting.js";
import { metric, slowClient, until } from "../sockets.js";
import { environment, startLimited } from "./limitedservice.js";

const folder = scratchFolder();
afterAll(() => folder.remove());
const at = (name: string) => join(folder.path, name);
const run = promisify(execFile);

async function expectWhole(url: string, acknowledged: readonly Acknowledged[]): Promise<void> {
  const report = await (await fetch(`${url}/api/v1/log/verify`, { method: "POST" })).json();
  expect(report).toMatchObject({ valid: true, errors: [] });
  for (const { log_entry_id, entry_hash, sth } of acknowledged) {
    expect(await (await fetch(`${url}/api/v1/log/${log_entry_id}`)).json()).toMatchObject({ entry_hash });
    expect(await (await fetch(`${url}/api/v1/log/sth/${sth.tree_size}`)).json()).toEqual(sth);
  }
}

test("a full disk: 503 until there is room, without a restart, and acknowledged entries are there", async () => {
  // Writes beyond the limit fail with an error, as they do on a full disk.
  const { child, url, log } = await startLimited("trap '' XFSZ; ulimit -S -f 1500", at("full"));
  const acknowledged: Acknowledged[] = [];
  let refused: Response | null = null;
  for (let n = 0; !refused; n++) {
    const response = await attest(url, `document ${n} ${"x".repeat(400)}`);
    if (response.status === 200) acknowledged.push((await response.json()) as Acknowledged);
    else refused = response;
  }
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toBe("10");
  expect(await refused.json()).toMatchObject({ code: "storage-full" });
  expect(acknowledged.length).toBeGreaterThan(10);
  expect(await metric(url, "cairnlog_last_batch_failed")).toBe(1);
  expect((await fetch(`${url}/livez`)).status).toBe(200);
  expect(log()).toContain("The disk has no room for the log (EFBIG).");

  await run("prlimit", ["--pid", `${child.pid}`, "--fsize=unlimited"]);
  await until(async () => (await fetch(`${url}/readyz`)).status === 200);
  const response = await attest(url, "there is room again");
  expect(response.status).toBe(200);
  acknowledged.push((await response.json()) as Acknowledged);
  await expectWhole(url, acknowledged);
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);

  const again = await startService(at("full"));
  await expectWhole(again.url, acknowledged);
  expect(await again.stop()).toBe(0);
});

test("few open files: fewer connections, with a warning, and those that there are are served", async () => {
  const { child, url, log } = await startLimited("ulimit -n 352", at("files"));
  expect(log()).toContain("too few files may be open");
  const clients = await Promise.all(Array.from({ length: 150 }, () => slowClient(url)));
  await until(() => clients.filter(({ socket }) => socket.destroyed).length >= 86);
  expect(log()).not.toContain("EMFILE");
  for (const { socket } of clients) socket.destroy();
  await until(async () => (await fetch(`${url}/livez`).catch(() => null))?.status === 200);
  expect((await attest(url, "still here")).status).toBe(200);
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});

/** A command that may open so many files. */
const withFiles = (files: number, ...command: string[]) =>
  ["bash", ["-c", `ulimit -n ${files}; exec "$0" "$@"`, process.execPath, MAIN, ...command]] as const;

const witness = (data: string) => {
  const logs = ["--logs", logsFile([newTree("log.example/few-files")]), "--name", "w.example/few-files"];
  return ["witness", "--data", at(data), ...logs, "--port", "0", "--json"];
};

test.each([
  ["the service", 128, ["serve"]],
  ["the service", 280, ["serve"]],
  ["a witness", 150, witness("none-witness")],
])("far too few open files: %s does not start with %i", async (_, files, command) => {
  const limited = run(...withFiles(files, ...command), { env: environment(at("none")) });
  await expect(limited).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/too many open files|ulimit -n/),
  });
});

test("few open files: a witness says so, and answers", async () => {
  const child = spawn(...withFiles(200, ...witness("few-witness")), { stdio: "pipe" });
  onTestFinished(() => void child.kill());
  const said = text(child.stderr);
  const [line] = await once(createInterface(child.stdout), "line");
  expect((await fetch(`${JSON.parse(line).url}/vkey`)).status).toBe(200);
  child.kill("SIGTERM");
  expect(await said).toContain("too few files may be open");
});

/** The message of a start that is refused. */
async function refusal(dataDir: string, more: Record<string, string> = {}): Promise<string> {
  const env = { ...environment(dataDir), ...more };
  const { code, stdout, stderr } = await cairnlog(["serve"], { env });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^(\{.*\}\n)*cairnlog: [^\n]*\n$/);
  return stderr;
}

describe("a start that is refused says why", () => {
  test("the port is in use", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    expect(await refusal(at("port"), { PORT: `${port}` })).toContain(`port ${port}: the port is in use`);
    server.close();
  });

  test("the address is not this machine's", async () => {
    const named = { HOST: "192.0.2.1", SERVICE_PUBLIC_URL: "https://log.example" };
    expect(await refusal(at("host"), named)).toContain("Cannot listen on 192.0.2.1");
  });

  test("the data directory is a file, or below one", async () => {
    writeFileSync(at("file"), "");
    expect(await refusal(at("file"))).toMatch(/data directory .*file cannot be written \(EEXIST\)/);
    expect(await refusal(at("file/below"))).toMatch(/cannot be written \(ENOTDIR\)/);
  });

  test("the operator key is a directory, empty, or no key", async () => {
    mkdirSync(at("directory.pem"));
    writeFileSync(at("empty.pem"), "");
    writeFileSync(at("text.pem"), "not a key");
    const withKey = (name: string) => refusal(at("keys"), { SERVICE_OPERATOR_KEY: at(name) });
    expect(await withKey("directory.pem")).toMatch(/operator key .*directory\.pem cannot be read/);
    for (const name of ["empty.pem", "text.pem"]) expect(await withKey(name)).toMatch(/key/i);
    expect(existsSync(at("keys/log"))).toBe(false);
  });
});

test("an operator key that others can read is used, with a warning", async () => {
  const service = await startService(at("readable"));
  expect(await service.stop()).toBe(0);
  // In the data directory, the mode of the key is corrected. A key elsewhere is its owner's responsibility.
  renameSync(at("readable/operator.pem"), at("elsewhere.pem"));
  chmodSync(at("elsewhere.pem"), 0o644);
  const { child, log } = await startLimited(`export SERVICE_OPERATOR_KEY=${at("elsewhere.pem")}`, at("readable"));
  await until(() => log().includes("can be read by others"));
  expect(log()).not.toContain(readFileSync(at("elsewhere.pem"), "utf8").split("\n")[1]);
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
});
