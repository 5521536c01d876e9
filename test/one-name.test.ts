/** New files on disks on which a file has one name, such as FAT or a bucket that is mounted. */
import fs, { readdirSync, readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { writeKeyFile } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { FolderTarget } from "#cairnlog/server/publishing/folder.js";
import { temporaryFolder } from "./server/harness.js";

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

/** Makes a new file. @returns whether it did, or throws */
const MAKERS: Readonly<Record<string, (folder: string, text: string) => unknown>> = {
  "a private key": (folder, text) => writeKeyFile(join(folder, "new"), text),
  "a published tile": async (folder, text) => {
    if (!(await new FolderTarget(folder).create("new", Buffer.from(text)))) throw new Error("EEXIST");
  },
};

test.each(Object.entries(MAKERS))("%s gets its name, and never one that is taken", async (_, make) => {
  vi.spyOn(fs, "linkSync").mockImplementation(() => {
    throw Object.assign(new Error("EPERM: operation not permitted, link"), { code: "EPERM", syscall: "link" });
  });
  syncBuiltinESMExports();
  const folder = temporaryFolder();
  await make(folder, "the first");
  await expect((async () => make(folder, "another"))()).rejects.toThrow("EEXIST");
  expect(readFileSync(join(folder, "new"), "utf8")).toBe("the first");
  const left = readdirSync(folder, { recursive: true, encoding: "utf8" });
  expect(left.filter((name) => name !== ".drafts")).toEqual(["new"]);
});
