/** The examples of docs/client.md, run exactly as they are written there. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startTestService, temporaryFolder } from "../server/harness.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const examples = [...readFileSync(join(root, "docs/client.md"), "utf8").matchAll(/```js\n([\s\S]*?)```/g)];

test.each([
  ["one document", 0, /^entry 2\ntrue\n1 key_registration\n2 https:\S+\n$/],
  ["many documents", 1, /^Page one entry 2\nPage two entry 3\nPage three entry 4\n$/],
] as const)("the example of docs/client.md with %s runs in a project of its own", async (_, i, printed) => {
  const service = await startTestService();
  const project = temporaryFolder();
  mkdirSync(join(project, "node_modules"));
  symlinkSync(root, join(project, "node_modules", "cairnlog"));
  writeFileSync(join(project, "main.mjs"), examples[i]![1]!);
  const env = { ...process.env, SERVER: service.url };
  const { stdout } = await promisify(execFile)(process.execPath, ["main.mjs"], { cwd: project, env });
  expect(stdout).toMatch(printed);
});

test("there is no other example", () => {
  expect(examples).toHaveLength(2);
});
