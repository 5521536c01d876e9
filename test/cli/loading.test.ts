/** The modules that the command loads: it starts fast only if it loads no more than it needs. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { MAIN, scratchFolder } from "../service.js";

const folder = scratchFolder();
afterAll(() => folder.remove());

const inline = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`;

/** The URLs of the files that Node loads to run `cairnlog` with these arguments; its own modules are in its binary. */
async function modulesOf(...args: string[]): Promise<string[]> {
  const list = join(folder.path, args.join(" "));
  const hooks = inline(`import { appendFileSync } from "node:fs";
export function load(url, context, next) {
  if (url.startsWith("file:")) appendFileSync(${JSON.stringify(list)}, url + "\\n");
  return next(url, context);
}`);
  const register = inline(`import { register } from "node:module"; register(${JSON.stringify(hooks)});`);
  await promisify(execFile)(process.execPath, ["--import", register, MAIN, ...args]);
  return readFileSync(list, "utf8").trimEnd().split("\n");
}

test("the overview loads no subcommand", async () => {
  const modules = await modulesOf("--help");
  expect(modules.filter((url) => url.endsWith("/cli/commands.js"))).toHaveLength(1);
  expect(modules.length).toBeLessThan(15);
});

test.each(["keys", "serve"])("%s loads TypeBox from a few files of the package", async (command) => {
  const modules = await modulesOf(command, "--help");
  expect(modules.filter((url) => url.includes("/node_modules/typebox/"))).toEqual([]);
  const bundled = modules.filter((url) => url.includes("/dist/engine/typebox/"));
  expect(bundled.length).toBeGreaterThan(0);
  expect(bundled.length).toBeLessThan(10);
});
