/** Output that cannot be written: every command ends with 1 and says so; `| head` ends it quietly; nothing is lost with it. */
import { spawn } from "node:child_process";
import { openSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { COMMANDS } from "#cairnlog/server/cli/commands.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";
import { MAIN } from "../service.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
const state = at("state");
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
  writeFileSync(at("me.pem"), newSigner().privateKey);
  writeFileSync(at("paper"), "A paper");
});

/** Runs the command with its output into a file, or into a pipe whose reader is gone. */
async function run(args: readonly string[], output: "/dev/full" | "closed") {
  const stdout = output === "closed" ? "pipe" : openSync(output, "w");
  const env = { ...process.env, CAIRNLOG_SERVER: service.url, XDG_CONFIG_HOME: state };
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ["ignore", stdout, "pipe"], env });
  child.stdout?.destroy();
  let stderr = "";
  child.stderr!.on("data", (text) => {
    stderr += text;
  });
  const code = await new Promise((resolve) => child.on("close", resolve));
  return { code, stderr };
}

/** Does the work for all items, two at a time. */
async function forAll<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all([worker(), worker()]);
}

const FULL = "cairnlog: The output does not fit on the disk: it is full (ENOSPC).\n";

test("every command, and one action of each, says that a full disk took nothing, and ends with 1", async () => {
  const lines: string[][] = [["--help"], ["--version"]];
  for (const [name, { load }] of Object.entries(COMMANDS))
    lines.push(
      [name, "--help"],
      ...Object.keys((await load()).actions ?? {})
        .slice(0, 1)
        .map((action) => [name, action, "--help"]),
    );
  const wrong: unknown[] = [];
  await forAll(lines, async (line) => {
    const { code, stderr } = await run(line, "/dev/full");
    if (code !== 1 || stderr !== FULL) wrong.push({ line, code, stderr });
  });
  expect(wrong).toEqual([]);
});

test("so do commands that have done something", async () => {
  const key = ["--key", at("me.pem")];
  const lines = [
    ["keygen", "--out", at("new.pem")],
    ["attest", at("paper"), ...key],
    ["attest", at("paper"), at("me.pem"), ...key],
    ["login", ...key],
    ["verify", at("paper"), "--json"],
    ["log", "head"],
    ["log", "search"],
    ["keys", "list", "--json"],
    ["export", "--out", "-"],
    ["config", "show"],
    ["completion", "bash"],
  ];
  for (const line of lines) {
    const { code, stderr } = await run(line, "/dev/full");
    expect({ line, code }).toEqual({ line, code: 1 });
    expect(stderr).toMatch(/ENOSPC/);
  }
  // What was recorded has its receipt.
  expect(statSync(at("paper.attestation.json")).size).toBeGreaterThan(0);
});

test("a reader that has enough, as head, ends the command at once and quietly", async () => {
  for (const line of [["--help"], ["completion", "bash"], ["export", "--out", "-"], ["log", "search"]])
    expect({ line, ...(await run(line, "closed")) }).toEqual({ line, code: 141, stderr: "" });
});

describe("a recovery key that cannot be shown", () => {
  const kept = () => readdirSync(join(state, "cairnlog")).filter((name) => name.includes("recovery-key"));
  const create = (name: string, output: "/dev/full" | "closed") => {
    const signer = newSigner();
    writeFileSync(at(`${name}.pem`), signer.privateKey);
    const named = ["--name", name, "--email", "x@example.org", "--label", "laptop"];
    return run(["register", "--key", at(`${name}.pem`), "--pseudonym", name], "closed").then(() =>
      run(["account", "create", ...named, "--key", at(`${name}.pem`)], output),
    );
  };

  test.each(["/dev/full", "closed"] as const)("by %s is kept in a file of its owner's", async (output) => {
    const before = kept();
    const { code, stderr } = await create(output.replace("/dev/", ""), output);
    expect(code).toBe(output === "closed" ? 141 : 1);
    const file = join(state, "cairnlog", kept().find((name) => !before.includes(name))!);
    expect(stderr).toContain(`What is shown only this once is in ${file}.`);
    expect(readFileSync(file, "utf8")).toMatch(/^(?:[0-9A-Z]{5}-){7}[0-9A-Z]{5}\n$/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});
