/** The installation of docs/operating.md: all of its commands that do not need root. */
import { execFile } from "node:child_process";
import { cpSync, existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { scratchFolder, startService } from "../service.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const folder = scratchFolder();
afterAll(() => folder.remove());

/** Names in a checkout that are not in git. */
const MADE = new Set([".git", "node_modules", "dist", "build", "data"]);

test("installed by the documented commands, the program that the unit starts serves", async () => {
  const [, commands] = /^## Install\n[\s\S]*?```sh\n([\s\S]*?)```/m.exec(read("docs/operating.md"))!;
  const lines = commands!.trimEnd().split("\n");
  const isPrivileged = (line: string) => /^(?:useradd|systemctl) |\/etc\//.test(line);
  const unprivileged = lines.filter((line) => !isPrivileged(line));
  expect(unprivileged).toHaveLength(1);
  for (const [, path] of commands!.matchAll(/\b(docs\/\S+)/g)) expect(existsSync(join(root, path!)), path).toBe(true);

  const [checkout, opt] = [join(folder.path, "checkout"), join(folder.path, "opt")];
  cpSync(root, checkout, { recursive: true, filter: (path) => path === root || !MADE.has(basename(path)) });
  const script = unprivileged[0]!.replaceAll("/opt/cairnlog", opt);
  expect(script).not.toMatch(/ \/(?:opt|etc|usr|var)\//);
  const env = { ...process.env, npm_config_prefer_offline: "true", npm_config_audit: "false" };
  await promisify(execFile)("sh", ["-ec", script], { cwd: checkout, env });
  expect(existsSync(join(opt, "node_modules", "vitest"))).toBe(false);

  const [, program] = /^ExecStart=\S+ \/opt\/cairnlog\/(\S+) serve$/m.exec(read("docs/deploy/cairnlog.service"))!;
  const service = await startService(join(folder.path, "data"), {}, { main: join(opt, program!) });
  for (const path of ["/readyz", "/", "/docs/style.css"]) expect((await fetch(service.url + path)).status).toBe(200);
  expect(await service.stop()).toBe(0);
});
