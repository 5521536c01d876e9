/** The check of a binary before it is loaded. `tampered.long.test.ts` does the same with whole installations. */
import { copyFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { loadChecked } from "#cairnlog/engine/native/checked.js";
import { scratchFolder } from "../service.js";

const folder = scratchFolder();
const require = createRequire(import.meta.url);
const { dlopen } = process;
afterAll(() => folder.remove());
afterEach(() => {
  expect(process.dlopen).toBe(dlopen);
  vi.unstubAllEnvs();
});

const strange = join(folder.path, "strange.node");
writeFileSync(strange, "not what was published");
const REFUSED = expect.objectContaining({
  code: "precondition-failed",
  message: expect.stringMatching(
    /^The native code of lmdb was not loaded.*strange\.node \(SHA-256 [0-9a-f]{64}\)\. Install/,
  ),
});

test("a file whose hash is not known is not loaded", () => {
  vi.stubEnv("SERVICE_NATIVE_CODE", undefined);
  expect(() => loadChecked("lmdb", () => require(strange))).toThrow(REFUSED);
});

test("it is refused also if its package catches the error, or throws another one", () => {
  vi.stubEnv("SERVICE_NATIVE_CODE", "known");
  const caught = () => {
    try {
      return require(strange);
    } catch {
      return "without it";
    }
  };
  const replaced = () => {
    if (caught() === "without it") throw new Error("This platform is not supported");
  };
  expect(() => loadChecked("lmdb", caught)).toThrow(REFUSED);
  expect(() => loadChecked("lmdb", replaced)).toThrow(REFUSED);
});

test("a word that the setting does not have is no permission", () => {
  vi.stubEnv("SERVICE_NATIVE_CODE", "Any");
  expect(() => loadChecked("lmdb", () => require(strange))).toThrow(REFUSED);
});

test("with any it is given to the system, which finds that it is no library", () => {
  vi.stubEnv("SERVICE_NATIVE_CODE", "any");
  expect(() => loadChecked("lmdb", () => require(strange))).toThrow(
    expect.objectContaining({ code: "ERR_DLOPEN_FAILED" }),
  );
});

test("a binary is known for its own package, wherever the file is", () => {
  vi.stubEnv("SERVICE_NATIVE_CODE", "known");
  const host = `${process.platform}-${process.arch}`;
  const published = fileURLToPath(
    new URL(`../../node_modules/sodium-native/prebuilds/${host}/sodium-native.node`, import.meta.url),
  );
  const moved = join(folder.path, "moved.node");
  copyFileSync(published, moved);
  expect(() => loadChecked("lmdb", () => require(moved))).toThrow(/native code of lmdb was not loaded/);
  expect(loadChecked("sodium-native", () => require(moved))).toHaveProperty("crypto_sign_detached");
});
