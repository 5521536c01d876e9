/** An environment that LMDB opened, and that other threads of the process would not find: the call for that fails. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DIST } from "../reliability/planted.js";
import { scratchFolder } from "../service.js";
import { ServiceProcess } from "./process.js";
import { compileShim, Injector, type Rule } from "./shim.js";

const folder = scratchFolder();
const dataDir = join(folder.path, "data");
let library: string;

beforeAll(async () => {
  library = compileShim(folder.path);
  const service = new ServiceProcess(DIST, dataDir);
  await service.listening;
  await service.stop();
});
afterAll(() => folder.remove());

test.each([
  ["log/data.mdb", "EINTR"],
  ["log/data.mdb", "EIO"],
  ["log/postings/data.mdb", "EINTR"],
] as const)("%s, %s: a sentence, and no start", async (path, error) => {
  const files = join(folder.path, `${path}-${error}`.replaceAll("/", "-"));
  mkdirSync(files);
  const injector = new Injector(library, files, dataDir);
  const rule: Rule = { call: "open@lmdb", path, nth: 1, error, lasts: false };
  injector.arm(rule);
  const service = new ServiceProcess(DIST, dataDir, { ...injector.environment, SERVICE_FRONT_ENDS: "1" });
  try {
    expect(await service.listening).toBe(null);
    expect(await service.end()).toEqual({ code: 1, signal: null });
    expect(service.stderr).toContain(`${path} was opened, but threads of this process cannot share it.`);
    expect(injector.injected).toBe(1);
  } finally {
    await service.kill();
    injector.close();
  }
});
