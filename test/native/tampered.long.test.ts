/** Native code whose hash is not known is not loaded: a copy of what is installed, with one byte more in one binary. */
import { execFile } from "node:child_process";
import { appendFileSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Finished, scratchFolder, startService } from "../service.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = scratchFolder();
afterAll(() => folder.remove());
/** Without what a machine sets for all tests. */
const { SERVICE_NATIVE_CODE: _, ...ENVIRONMENT } = process.env;

/** Copies of these, because a package finds its binary from where it really is; the others are links. */
const COPIED = ["lmdb", "@lmdb", "msgpackr", "msgpackr-extract", "@msgpackr-extract", "sodium-native"];
const install = join(folder.path, "install");
const main = join(install, "dist", "server", "cli", "main.js");
const HOST = `${process.platform}-${process.arch}`;
const UWS = `dist/uws/uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
const loadsUws = (() => {
  try {
    createRequire(import.meta.url)(join(root, UWS));
    return true;
  } catch {
    return false;
  }
})();

/** The binaries of the package that this machine may load. */
function binariesOf(name: string): readonly string[] {
  if (name === "uWebSockets.js") return [UWS];
  const place = `node_modules/${name === "sodium-native" ? `sodium-native/prebuilds/${HOST}` : `@${name}/${name}-${HOST}`}`;
  return readdirSync(join(root, place)).flatMap((file) => (file.endsWith(".node") ? `${place}/${file}` : []));
}

beforeAll(() => {
  const modules = join(install, "node_modules");
  mkdirSync(modules, { recursive: true });
  for (const name of ["dist/engine", "dist/server", "dist/wasm", UWS, "package.json"])
    cpSync(join(root, name), join(install, name), { recursive: true });
  for (const name of readdirSync(join(root, "node_modules"))) {
    const [from, to] = [join(root, "node_modules", name), join(modules, name)];
    if (COPIED.includes(name)) cpSync(from, to, { recursive: true });
    else symlinkSync(from, to);
  }
});

/** Runs the copy's command to its end. */
const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> =>
  new Promise((resolve) => {
    execFile(process.execPath, [main, ...args], { env: { ...ENVIRONMENT, ...env } }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr });
    });
  });

let services = 0;
/** Starts the copy, and stops it. @throws Error if it does not start */
async function serves(environment: NodeJS.ProcessEnv): Promise<void> {
  const service = await startService(join(folder.path, `data-${services++}`), environment, { main });
  expect(await service.stop()).toBe(0);
}

test("the copy starts as it was installed", async () => {
  await serves({ SERVICE_NATIVE_CODE: "" });
});

const PACKAGES = ["lmdb", "msgpackr-extract", "sodium-native", ...(loadsUws ? ["uWebSockets.js"] : [])];

describe.each(PACKAGES)("a binary of %s with one byte more", (name) => {
  const binaries = binariesOf(name);
  beforeAll(() => {
    for (const file of binaries) appendFileSync(join(install, file), "\0");
  });
  afterAll(() => {
    for (const file of binaries) cpSync(join(root, file), join(install, file));
  });

  test("is not loaded: the service does not start, and says why", async () => {
    const data = join(folder.path, "refused");
    const { code, stdout, stderr } = await run(["serve"], { PORT: "0", SERVICE_DATA_DIR: data });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    const sentence = `cairnlog: The native code of ${name} was not loaded, because its hash is not known: `;
    const line = stderr
      .trim()
      .split("\n")
      .find((text) => text.startsWith("cairnlog: "))!;
    expect(line).toContain(sentence);
    expect(binaries.some((file) => line.includes(file))).toBe(true);
    expect(line).toContain("Install the dependencies again, or set SERVICE_NATIVE_CODE=any");
    expect(existsSync(join(data, "log"))).toBe(false);
    rmSync(data, { recursive: true, force: true });
  });

  test("is loaded with SERVICE_NATIVE_CODE=any", async () => {
    await serves({ SERVICE_NATIVE_CODE: "any" });
  });

  test("does not concern commands that do not load it", async () => {
    expect(await run(["--help"])).toMatchObject({ code: 0, stderr: "" });
  });
});

test("another word for the setting is not understood", async () => {
  const { code, stderr } = await run(["serve"], { PORT: "0", SERVICE_NATIVE_CODE: "some" });
  expect(code).toBe(2);
  expect(stderr).toContain('SERVICE_NATIVE_CODE must be known or any, not "some".');
});
