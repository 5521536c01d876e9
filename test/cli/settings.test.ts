/** `cairnlog settings` and `--env-file`: what holds, where it comes from, and what would keep the service from starting. */
import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { describeSettings } from "#cairnlog/server/index.js";
import { cairnlog, scratchFolder } from "../service.js";

const folder = scratchFolder();
afterAll(() => folder.remove());
const at = (name: string) => join(folder.path, name);

/** Runs the command with exactly these variables. */
const settings = (args: readonly string[], env: Record<string, string> = {}) =>
  cairnlog(["settings", ...args], { env: { PATH: process.env.PATH, ...env } });

let files = 0;
function envFile(content: string): string {
  const path = at(`environment-${files++}`);
  writeFileSync(path, content);
  return path;
}

test("an option goes before the environment, that before the file, and that before the default", async () => {
  const file = envFile(
    "PORT=1\nHOST=::1\nSERVICE_DATA_DIR=/of/the/file\nSERVICE_OPERATOR_NAME=File\nSERVICE_WORKERS=2\n",
  );
  const args = ["--env-file", file, "--data", "/of/the/option", "--json"];
  const env = { PORT: "2", SERVICE_DATA_DIR: "/of/the/environment", SERVICE_OPERATOR_NAME: "" };
  const { code, stdout, stderr } = await settings(args, env);
  expect([code, stderr]).toEqual([0, ""]);
  const answer = JSON.parse(stdout);
  const of = (name: string) => answer.settings.find((one: { name: string }) => one.name === name);
  expect(of("SERVICE_DATA_DIR")).toEqual({ name: "SERVICE_DATA_DIR", value: "/of/the/option", from: "option" });
  expect(of("PORT")).toEqual({ name: "PORT", value: "2", from: "environment" });
  expect(of("HOST")).toEqual({ name: "HOST", value: "::1", from: "file" });
  // An empty variable is one that is not set.
  expect(of("SERVICE_OPERATOR_NAME")).toEqual({ name: "SERVICE_OPERATOR_NAME", value: "File", from: "file" });
  expect(of("SERVICE_RATE_LIMITS")).toEqual({ name: "SERVICE_RATE_LIMITS", value: "on", from: "default" });
  expect(answer.settings.map(({ name }: { name: string }) => name)).toEqual(describeSettings().map(({ name }) => name));
  expect([answer.faults, answer.unknown]).toEqual([[], []]);
});

test("without --json it is a table; passwords are never shown, whatever is wrong", async () => {
  const secret = "postgres://cairnlog:correcthorse@db.example/log";
  const good = await settings(["--env-file", envFile(`SERVICE_REPLICATION=${secret}\n`)]);
  expect(good.code).toBe(0);
  expect(good.stdout).toMatch(/^SERVICE_REPLICATION +file +\(not shown\)$/m);
  expect(good.stdout).toMatch(/^PORT +default +8080$/m);
  const bad = await settings(["--check"], { SERVICE_REPLICATION: `${secret}?sslmode=perhaps`, PORT: "x" });
  expect(bad.code).toBe(1);
  for (const { stdout, stderr } of [good, bad]) expect(stdout + stderr).not.toContain("correcthorse");
});

test("--check names each fault in a line, and changes nothing", async () => {
  const list = at("writers");
  writeFileSync(list, "ada\n");
  const wrong = await settings(["--check"], { PORT: "x", SERVICE_RATE_LIMITS: "maybe", SERVICE_WROTERS: "everybody" });
  expect(wrong.code).toBe(1);
  expect(wrong.stdout).toBe("");
  expect(wrong.stderr.trimEnd().split("\n")).toEqual([
    "cairnlog: SERVICE_WROTERS is not a setting. Is SERVICE_WRITERS meant?",
    'cairnlog: PORT must be a whole number from 0 to 65535, not "x".',
    'cairnlog: SERVICE_RATE_LIMITS must be on or off, not "maybe".',
  ]);
  const data = at("none/data");
  const environment = {
    HOST: "0.0.0.0",
    SERVICE_DATA_DIR: data,
    SERVICE_TLS_CERT: at("no.pem"),
    SERVICE_TLS_KEY: at("no.key"),
    SERVICE_HARDWARE_ROOTS: at("roots.pem"),
    SERVICE_WITNESSES: at("policy"),
    SERVICE_WRITERS: list,
    SERVICE_OPERATOR_KEY: list,
    SERVICE_TRANSPORT: "uws",
    SERVICE_IDLE_TIMEOUT_S: "60",
  };
  expect((await settings([], environment)).code).toBe(0);
  const files = await settings(["--check"], environment);
  expect(files.code).toBe(1);
  const lines = files.stderr.trimEnd().split("\n");
  for (const [i, part] of [
    "set SERVICE_PUBLIC_URL",
    "SERVICE_IDLE_TIMEOUT_S",
    "SERVICE_TLS_CERT",
    "roots.pem",
    "SERVICE_WITNESSES",
    "writers, line 1: it must be names, options and a key",
    "key",
  ].entries())
    expect(lines[i]).toContain(part);
  expect(lines).toHaveLength(7);
  expect(existsSync(at("none"))).toBe(false);
  const good = await settings(["--check"], { SERVICE_DATA_DIR: data, SERVICE_STRANGE: "1" });
  expect(good).toEqual({
    code: 0,
    stdout: "nothing is wrong\n",
    stderr: "cairnlog: SERVICE_STRANGE is not a setting, and has no effect\n",
  });
  expect(existsSync(at("none"))).toBe(false);
});

test("a file that is not there is no file without settings", async () => {
  for (const command of ["settings", "serve"]) {
    const args = [command, `--env-file=${at("nothing")}`];
    const { code, stdout, stderr } = await cairnlog(args, { env: { PATH: process.env.PATH } });
    // Node 20 looks for the option behind the script, too, and ends with 9 before the command begins.
    expect([2, 9]).toContain(code);
    expect([stdout, stderr]).toEqual(["", expect.stringContaining(at("nothing"))]);
  }
});

test("the format is that of node --env-file", async () => {
  const file = envFile(`# a comment
HOST = "::1"   # behind it
export SERVICE_OPERATOR_NAME='Ada # and "Bob"'
SERVICE_LOG_DESCRIPTION="with = and
two lines"
SERVICE_LOG_NAME=\`log.example\`
  PORT=8081

SERVICE_WORKERS=
nonsense
`);
  const names = ["HOST", "SERVICE_OPERATOR_NAME", "SERVICE_LOG_DESCRIPTION", "SERVICE_LOG_NAME", "PORT"];
  const script = `JSON.stringify(${JSON.stringify(names)}.map((name) => process.env[name]))`;
  const node = execFileSync(process.execPath, [`--env-file=${file}`, "-p", script], { env: {}, encoding: "utf8" });
  const { stdout } = await settings(["--env-file", file, "--json"]);
  const shown = JSON.parse(stdout).settings as { name: string; value: string; from: string }[];
  const ours = names.map((name) => shown.find((one) => one.name === name)!);
  expect(ours.map(({ value }) => value)).toEqual(JSON.parse(node));
  expect(new Set(ours.map(({ from }) => from))).toEqual(new Set(["file"]));
});
