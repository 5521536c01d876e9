/** The example of docs/client.md, run exactly as it is written there. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startTestService, temporaryFolder } from "../server/harness.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("the example of docs/client.md runs in a project of its own", async () => {
  const [, example] = /```js\n([\s\S]*?)```/.exec(readFileSync(join(root, "docs/client.md"), "utf8"))!;
  const service = await startTestService();
  const project = temporaryFolder();
  mkdirSync(join(project, "node_modules"));
  symlinkSync(root, join(project, "node_modules", "cairnlog"));
  writeFileSync(join(project, "main.mjs"), example!);
  const env = { ...process.env, SERVER: service.url };
  const { stdout } = await promisify(execFile)(process.execPath, ["main.mjs"], { cwd: project, env });
  expect(stdout).toMatch(/^entry 2\ntrue\n1 key_registration\n2 https:\S+\n$/);
});
