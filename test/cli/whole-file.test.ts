/** Files that a user asks for with `--out`: whole, or as they were. */
import fs, { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { streamNew, writeNew, writeWhole } from "#cairnlog/server/cli/files/whole-file.js";

const folders: string[] = [];
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "cairnlog-whole-"));
  folders.push(folder);
  return folder;
};
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const failWith = (name: "linkSync" | "renameSync", code: string) => {
  vi.spyOn(fs, name).mockImplementation(() => {
    throw Object.assign(new Error(code), { code, syscall: name });
  });
  syncBuiltinESMExports();
};
const NEW: Readonly<Record<string, (path: string) => unknown>> = {
  "from a text": (path) => writeNew(path, "all of it"),
  "from a stream": (path) =>
    streamNew(
      path,
      async function* () {
        yield "all ";
        yield "of it";
      },
      new AbortController().signal,
    ),
};

test.each(Object.keys(NEW))(
  "a new one %s takes no name that something has, also where a file has one name",
  async (how) => {
    const folder = newFolder();
    const write = async (name: string) => NEW[how]!(join(folder, name));
    for (const isWithLinks of [true, false]) {
      if (!isWithLinks) failWith("linkSync", "EPERM");
      await write(`${isWithLinks}`);
      expect(readFileSync(join(folder, `${isWithLinks}`), "utf8")).toBe("all of it");
      for (const taken of [`${isWithLinks}`, "folder"]) {
        mkdirSync(join(folder, "folder"), { recursive: true });
        await expect(write(taken)).rejects.toMatchObject({ code: "EEXIST", path: join(folder, taken) });
      }
    }
    await expect(write("none/there")).rejects.toMatchObject({ code: "ENOENT" });
    expect(readdirSync(folder)).toEqual(["false", "folder", "true"]);
  },
);

test("a stream that fails, or is interrupted while it waits, leaves nothing", async () => {
  const folder = newFolder();
  const controller = new AbortController();
  const { signal } = controller;
  const fails = async function* () {
    yield "a part";
    throw new Error("broken");
  };
  await expect(streamNew(join(folder, "file"), fails, signal)).rejects.toThrow("broken");
  const waits = async function* () {
    yield "a part";
    setImmediate(() => controller.abort(new Error("Interrupted.")));
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
  };
  await expect(streamNew(join(folder, "file"), waits, signal)).rejects.toThrow("Interrupted.");
  expect(readdirSync(folder)).toEqual([]);
});

test("one in the place of another is the old one or the new one; links and what is no file stay", () => {
  const folder = newFolder();
  const [file, link] = [join(folder, "file"), join(folder, "link")];
  writeWhole(file, "first", 0o600);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  symlinkSync("file", link);
  writeWhole(link, "second");
  expect([readFileSync(file, "utf8"), fs.readlinkSync(link)]).toEqual(["second", "file"]);

  const { writeFileSync: write } = fs;
  vi.spyOn(fs, "writeFileSync").mockImplementation((path, content, options) => {
    write(path, (content as string).slice(0, 3), options);
    throw Object.assign(new Error("full"), { code: "ENOSPC", syscall: "write" });
  });
  syncBuiltinESMExports();
  expect(() => writeWhole(file, "third")).toThrow("full");
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  expect(readFileSync(file, "utf8")).toBe("second");

  writeWhole("/dev/null", "nothing");
  expect(statSync("/dev/null").isCharacterDevice()).toBe(true);
  // A file that is mounted by itself cannot be replaced, but written.
  failWith("renameSync", "EBUSY");
  writeWhole(file, "fourth");
  expect(() => writeWhole(join(folder, "new"), "text")).toThrow("EBUSY");
  expect(readFileSync(file, "utf8")).toBe("fourth");
  expect(readdirSync(folder)).toEqual(["file", "link"]);
});
