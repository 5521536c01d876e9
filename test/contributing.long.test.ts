/** The changes that docs/contributing.md shows, each applied to a copy of the tree, built, and run with its tests. */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const manual = readFileSync(join(root, "docs", "contributing.md"), "utf8");

let copy = "";
afterEach(() => rmSync(copy, { recursive: true, force: true }));

/** A copy of the sources in a new folder. It shares the packages, but not the build. */
function copyOfTheTree(): string {
  const folder = mkdtempSync(join(tmpdir(), "cairnlog-change-"));
  // The files that git tracks, so without build and packages.
  const files = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" }).split("\0").filter(Boolean);
  for (const name of files) cpSync(join(root, name), join(folder, name));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  return folder;
}

function run(...[command, ...args]: string[]): void {
  const { status, stdout, stderr } = spawnSync(command!, args, { cwd: copy, encoding: "utf8" });
  expect(status, `${command} ${args.join(" ")}\n${stdout}\n${stderr}`).toBe(0);
}

test.each([
  ["add-kind", 8, ["test/registry/keys/note.test.ts", "test/verify/kinds.test.ts", "test/registry/replay.test.ts"]],
  ["add-route", 4, ["test/contract/interface.test.ts", "test/contract/service/openapi.test.ts"]],
  ["add-index", 4, ["test/registry/attestations/title.test.ts"]],
] as const)("%s: at most %i files, and it works", { timeout: 600_000 }, (name, most, tests) => {
  const diff = join(root, "docs", "examples", `${name}.diff`);
  expect(manual).toContain(`examples/${name}.diff`);
  const files = readFileSync(diff, "utf8").match(/^diff --git/gm)!;
  expect(files.length).toBeLessThanOrEqual(most);
  copy = copyOfTheTree();
  run("git", "apply", "--whitespace=nowarn", diff);
  const bin = join(root, "node_modules");
  run(process.execPath, "scripts/build.mjs");
  run(join(bin, ".bin", "tsc"), "--noEmit", "--project", "test/tsconfig.json");
  run(process.execPath, join(bin, "vitest", "vitest.mjs"), "run", "--config", "test/vitest.config.ts", ...tests);
});
