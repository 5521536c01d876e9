/** The files in a monitor's folder, and how they are written. */
import fs, { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { expect, test, vi } from "vitest";
import { keepFile, MonitorFolder } from "#cairnlog/server/monitor/folder.js";
import { cramped } from "../reliability/cramped.js";
import { temporaryFolder } from "../server/harness.js";

const state = { operator_key: "PEM", head: null };

test("a fresh folder knows nothing, and nothing is made before it is needed", async () => {
  const path = join(temporaryFolder(), "state");
  const folder = new MonitorFolder(path);
  expect(await folder.store.load()).toBeUndefined();
  expect(folder.told).toBe(0);
  expect(existsSync(path)).toBe(false);
});

test("a relative path is one from here, wherever the process goes", () => {
  const path = temporaryFolder();
  expect(new MonitorFolder(relative(process.cwd(), path)).path).toBe(path);
  expect(new MonitorFolder(path).mirror).toBe(join(path, "mirror"));
});

test("state and the position of reported events are restored, from files that people can read", async () => {
  const path = join(temporaryFolder(), "a", "b");
  const folder = new MonitorFolder(path);
  await folder.store.save(state);
  folder.told = 7;
  const again = new MonitorFolder(path);
  expect(await again.store.load()).toEqual(state);
  expect(again.told).toBe(7);
  expect(readFileSync(join(path, "state.json"), "utf8")).toBe('{\n  "operator_key": "PEM",\n  "head": null\n}\n');
  expect(readFileSync(join(path, "told.json"), "utf8")).toBe('{\n  "entries": 7\n}\n');
  again.told = 0;
  expect(again.told).toBe(0);
  expect(readdirSync(path).sort()).toEqual(["state.json", "told.json"]);
});

test.each([
  ["told.json", '{"entries": -1}'],
  ["told.json", '{"entries": 1.5}'],
  ["told.json", "{}"],
  ["told.json", "undefined"],
  ["state.json", "{"],
  ["state.json", "null"],
])("%s with %s is no state", async (name, content) => {
  const path = temporaryFolder();
  const folder = new MonitorFolder(path);
  writeFileSync(join(path, name), content);
  const read = async () => (name === "told.json" ? folder.told : folder.store.load());
  await expect(read()).rejects.toMatchObject({
    code: "corrupt-log",
    message: expect.stringContaining(`${join(path, name)} is damaged. Begin anew in another directory`),
  });
});

test("an unreadable file is not treated as absent", async () => {
  const path = temporaryFolder();
  mkdirSync(join(path, "state.json"));
  await expect(new MonitorFolder(path).store.load()).rejects.toMatchObject({ code: "EISDIR" });
});

test("each piece of evidence has a file of its own", () => {
  const path = temporaryFolder();
  const folder = new MonitorFolder(path);
  const keep = () => folder.keepEvidence("fork", "2026-01-02T03:04:05.678Z", { alarm: "fork" });
  const [first, second] = [keep(), keep()];
  expect(first).not.toBe(second);
  for (const file of [first, second]) {
    expect(dirname(file)).toBe(join(path, "evidence"));
    expect(basename(file)).toMatch(/^2026-01-02T030405\.678Z-fork-[0-9a-f]{8}\.json$/);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ alarm: "fork" });
  }
  expect(readdirSync(join(path, "evidence"))).toHaveLength(2);
});

test("a file is written whole in place of the one before, readable by all, and nothing is left open", () => {
  const file = join(temporaryFolder(), "new", "file");
  const open = () => readdirSync("/proc/self/fd").length;
  expect(keepFile(file, "first")).toBe(file);
  const before = open();
  for (let n = 0; n < 20; n++) keepFile(file, `number ${n}`);
  expect(open()).toBeLessThan(before + 20);
  expect(readFileSync(file, "utf8")).toBe("number 19");
  expect(readdirSync(dirname(file))).toEqual(["file"]);
  expect(statSync(file).mode & 0o777).toBe(0o644 & ~process.umask());
});

test("a file is on disk before it has its name", () => {
  const calls: string[] = [];
  const spies = (["fsyncSync", "renameSync"] as const).map((name) => {
    const real = fs[name] as (...values: unknown[]) => void;
    return vi.spyOn(fs, name).mockImplementation((...values: unknown[]) => {
      calls.push(name);
      real(...values);
    });
  });
  // The code under test has its own names for these functions.
  syncBuiltinESMExports();
  try {
    keepFile(join(temporaryFolder(), "file"), "text");
  } finally {
    for (const spy of spies) spy.mockRestore();
    syncBuiltinESMExports();
  }
  // What comes after the name are the folders.
  expect(calls.slice(0, 2)).toEqual(["fsyncSync", "renameSync"]);
  expect(calls.slice(2)).not.toContain("renameSync");
  expect(calls.length).toBeGreaterThan(2);
});

test("something in the place of a file is not removed, and the old file stays", () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "taken", "by", "others"), { recursive: true });
  expect(() => keepFile(join(folder, "taken"), "text")).toThrow();
  expect(readdirSync(join(folder, "taken"))).toEqual(["by"]);
  expect(readdirSync(folder)).toEqual(["taken"]);
});

test("a file for which the disk has too little room does not take the place of the one before", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "file");
  keepFile(file, "whole");
  const { status, stderr } = cramped(import.meta.resolve("#cairnlog/server/monitor/folder.js"), "keepFile", file);
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining("EFBIG") });
  expect(readFileSync(file, "utf8")).toBe("whole");
  expect(readdirSync(folder)).toEqual(["file"]);
});
