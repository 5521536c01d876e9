/** Folders that are made together with those above them. */
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeFolders } from "#cairnlog/engine/base/files.js";
import { temporaryFolder } from "./server/harness.js";

const folder = temporaryFolder();
const at = (...names: string[]) => join(folder, ...names);

test("all that are missing are made, with the mode, and those that exist are left as they are", () => {
  mkdirSync(at("kept"), { mode: 0o755 });
  makeFolders(at("kept"), 0o700);
  makeFolders(at("a", "b", "c"), 0o700);
  makeFolders(at("a", "b", "c"), 0o700);
  const modes = [at("kept"), at("a"), at("a", "b", "c")].map((path) => statSync(path).mode & 0o777);
  expect(modes).toEqual([0o755, 0o700, 0o700]);
});

test("where none can be, the system's error comes at once", () => {
  writeFileSync(at("file"), "");
  expect(() => makeFolders(at("file"))).toThrow(/EEXIST/);
  expect(() => makeFolders(at("file", "below"))).toThrow(/ENOTDIR/);
  // Node's own recursive function never returns here.
  expect(() => makeFolders("/proc/x/y")).toThrow(/ENOENT/);
});
