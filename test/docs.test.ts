/** The README's commands and examples, run as they stand there. */
import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { cairnlog, scratchFolder, startService } from "./service.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const readme = readFileSync(join(root, "README.md"), "utf8");
const folder = scratchFolder();
afterAll(() => folder.remove());
const run = promisify(execFile);

/** The code block of this language that follows the marker. */
function marked(language: string): string {
  const block = readme
    .split("<!-- run by test/docs.test.ts -->")
    .slice(1)
    .map((rest) => /^\s*```(\w+)\n([\s\S]*?)```/.exec(rest))
    .find((match) => match?.[1] === language);
  return block![2]!;
}

test("a key, a signature and a request made with openssl and curl alone are accepted", async () => {
  const service = await startService(join(folder.path, "data"));
  try {
    copyFileSync(join(root, "README.md"), join(folder.path, "README.md"));
    const { stdout } = await run("bash", ["-euc", marked("sh")], {
      cwd: folder.path,
      env: { ...process.env, SERVER: service.url },
    });
    const answer = JSON.parse(stdout);
    expect(answer).toMatchObject({ pseudonym: "Grace", log_entry_id: 2, leaf_index: 1, sth: { tree_size: 2 } });
    const entry = await (await fetch(`${service.url}/api/v1/log/2`)).json();
    expect(entry.payload).toMatchObject({ document_title: "README.md", signer_key_fingerprint: answer.fingerprint });
  } finally {
    await service.stop();
  }
});

test("the embedding example runs in a project of its own", async () => {
  const project = join(folder.path, "project");
  mkdirSync(join(project, "node_modules"), { recursive: true });
  symlinkSync(root, join(project, "node_modules", "cairnlog"));
  writeFileSync(join(project, "main.mjs"), marked("js"));
  const { stdout } = await run(process.execPath, ["main.mjs"], { cwd: project });
  expect(stdout).toBe("true true\n");
});

test("every setting that `serve --help` lists is in the README's table, and no other", async () => {
  const { stdout } = await cairnlog(["serve", "--help"]);
  const listed = new Set(stdout.match(/\b(?:SERVICE_[A-Z_]+|RATE_LIMIT_[A-Z_]+|PORT|HOST|LOG_LEVEL)\b/g));
  const documented = new Set([...readme.matchAll(/^\| `([A-Z_]+)`/gm)].map((match) => match[1]));
  expect([...documented].sort()).toEqual([...listed].sort());
});
