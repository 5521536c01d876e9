/** The command `cairnlog serve`, as a process. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { startTestService, temporaryFolder, testEnvironment } from "../harness.js";

const MAIN = fileURLToPath(new URL("../../../dist/server/cli/main.js", import.meta.url));

interface Run {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  readonly exit: Promise<number | null>;
}

function run(argv: readonly string[], env: Record<string, string> = {}): Run {
  const child = spawn(process.execPath, [MAIN, ...argv], { env: { PATH: process.env.PATH ?? "", ...env } });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (data) => {
    output.stdout += data;
  });
  child.stderr.on("data", (data) => {
    output.stderr += data;
  });
  return { child, output, exit: once(child, "close").then(([code]) => code as number | null) };
}

async function firstLines({ child, output, exit }: Run, lines: number): Promise<string[]> {
  while (output.stdout.split("\n").length <= lines)
    await Promise.race([once(child.stdout!, "data"), exit.then(() => Promise.reject(new Error(output.stderr)))]);
  return output.stdout.trim().split("\n");
}

test.each(["SIGINT", "SIGTERM"] as const)("prints where it is, serves, and ends with code 0 on %s", async (signal) => {
  const dataDir = temporaryFolder();
  const service = run(["serve"], testEnvironment(dataDir));
  const [listening, operator, data] = await firstLines(service, 3);
  expect(listening).toMatch(/^listening on http:\/\/127\.0\.0\.1:\d+$/);
  expect(operator).toMatch(/^operator sha256:[0-9a-f]{64}$/);
  expect(data).toBe(`data ${dataDir}`);
  const health = await fetch(`${listening!.split(" ")[2]}/api/v1/health`);
  expect(health.status).toBe(200);
  await health.text();
  service.child.kill(signal);
  expect(await service.exit).toBe(0);
  expect(service.output.stderr).toBe("");
});

test("--json prints one line of JSON; the log goes to stderr; --data goes before the variable", async () => {
  const dataDir = temporaryFolder();
  const service = run(["serve", "--json", "--data", dataDir], { ...testEnvironment(), LOG_LEVEL: "info" });
  const [line] = await firstLines(service, 1);
  expect(JSON.parse(line!)).toEqual({
    url: expect.stringMatching(/^http:/),
    operator_fingerprint: expect.stringMatching(/^sha256:/),
    data_dir: dataDir,
  });
  service.child.kill("SIGTERM");
  expect(await service.exit).toBe(0);
  const lines = service.output.stderr.trim().split("\n");
  const messages = lines.map((line) => JSON.parse(line) as { readonly name: string; readonly msg: string });
  expect(messages.every(({ name }) => name === "cairnlog")).toBe(true);
  const [first, ...rest] = messages.map(({ msg }) => msg);
  expect([first, ...rest.slice(-2)]).toEqual(["listening", "stopping", "stopped"]);
});

test("a bad setting: a sentence and code 2", async () => {
  const service = run(["serve"], { ...testEnvironment(), PORT: "http", LOG_LEVEL: "loud" });
  expect(await service.exit).toBe(2);
  expect(service.output.stderr).toContain('PORT must be a whole number from 0 to 65535, not "http".');
  expect(service.output.stderr).toContain("LOG_LEVEL must be one of");
  expect(service.output.stderr).not.toContain("at ");
});

test("a port in use: a sentence and code 1", async () => {
  const { server } = await startTestService();
  const service = run(["serve"], { ...testEnvironment(), PORT: `${server.address.port}` });
  expect(await service.exit).toBe(1);
  expect(service.output.stderr).toMatch(/^cairnlog: Cannot listen on 127\.0\.0\.1 port \d+: the port is in use.*\.\n$/);
});

test("help, version, unknown commands", async () => {
  const help = run(["--help"]);
  expect(await help.exit).toBe(0);
  expect(help.output.stdout).toMatch(/^ {2}serve +run the service$/m);
  const serveHelp = run(["serve", "--help"]);
  expect(await serveHelp.exit).toBe(0);
  for (const name of ["PORT", "SERVICE_DATA_DIR", "SERVICE_RATE_LIMIT_GENERAL", "LOG_LEVEL"])
    expect(serveHelp.output.stdout).toContain(name);
  const version = run(["--version"]);
  expect(await version.exit).toBe(0);
  expect(version.output.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  for (const argv of [["dance"], ["toString"], [], ["serve", "--loud"]]) expect(await run(argv).exit).toBe(2);
});
