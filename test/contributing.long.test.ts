/** The changes that docs/contributing.md shows, applied to a copy of the tree, which is built and runs their tests. */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const examples = join(root, "docs", "examples");
const manual = readFileSync(join(root, "docs", "contributing.md"), "utf8");

let copy = "";
afterAll(() => rmSync(copy, { recursive: true, force: true }));

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

const CHANGES = [
  ["add-kind", 8, ["test/registry/keys/note.test.ts", "test/verify/kinds.test.ts", "test/registry/replay.test.ts"]],
  ["add-route", 4, ["test/contract/interface.test.ts", "test/contract/service/openapi.test.ts"]],
  ["add-writer-route", 8, []],
  ["add-index", 4, ["test/registry/attestations/title.test.ts"]],
  ["add-webhook-event", 5, ["test/registry/webhooks/webhooks.test.ts"]],
  // Five of source.
  ["add-field", 7, ["test/registry/attestations/language.test.ts", "test/verify/bundle/bundle.test.ts"]],
  ["add-setting", 6, ["test/contract/identity/auth.test.ts", "test/operating.test.ts"]],
  ["add-command", 3, ["test/cli/size.test.ts", "test/cli/commands.test.ts"]],
] as const;

test.each(CHANGES)("%s: at most %i files, named in the manual", (name, most) => {
  expect(manual).toContain(`examples/${name}.diff`);
  const files = readFileSync(join(examples, `${name}.diff`), "utf8").match(/^diff --git/gm)!;
  expect(files.length).toBeLessThanOrEqual(most);
});

test("they can be made one after the other, and work", () => {
  copy = copyOfTheTree();
  for (const [name] of CHANGES) run("git", "apply", "--whitespace=nowarn", join(examples, `${name}.diff`));
  const bin = join(root, "node_modules");
  run(process.execPath, "scripts/build.mjs");
  run(join(bin, ".bin", "tsc"), "--noEmit", "--project", "test/tsconfig.json");
  const tests = CHANGES.flatMap(([, , names]) => names);
  run(process.execPath, join(bin, "vitest", "vitest.mjs"), "run", "--config", "test/vitest.config.ts", ...tests);
});
