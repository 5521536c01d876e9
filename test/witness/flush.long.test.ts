/** A witness whose disk does not flush: it gives no cosignature, whatever it has written. The calls are those of the kernel. */
import { mkdirSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileShim, Injector } from "../faults/shim.js";
import { temporaryFolder } from "../server/harness.js";
import { scratchFolder } from "../service.js";
import { logsFile, spawnWitness } from "./harness.js";
import { newTree } from "./logs.js";

const FILE = "witness/data.mdb";
const folder = scratchFolder();
let library: string;
beforeAll(() => {
  library = compileShim(folder.path);
});
afterAll(() => folder.remove());

test("every cosignature has a flush of its own before it, and without that it is not given", async () => {
  const tree = newTree("log.example/flushed");
  const [dataDir, logs] = [temporaryFolder(), logsFile([tree])];
  mkdirSync(dataDir, { recursive: true });
  const injector = new Injector(library, folder.path, dataDir);
  const first = await spawnWitness(dataDir, logs, [], "ignore", injector.environment);
  const flushes = () =>
    injector.calls().filter(({ call, path }) => /^f(data)?sync@/.test(call) && path === FILE).length;
  for (let size = 1; size <= 3; size++) {
    const before = flushes();
    await first.expectCosigned(await first.add(tree.body(size - 1, size)), tree, size);
    expect(flushes()).toBeGreaterThan(before);
  }
  injector.arm({ call: "fdatasync@lmdb", path: FILE, nth: 1, error: "EIO", lasts: true });
  expect(
    await first.add(tree.body(3, 4)).then(
      ({ status }) => status,
      () => 503,
    ),
  ).toBeGreaterThanOrEqual(500);
  expect(injector.injected).toBeGreaterThan(0);
  expect(await first.exited).not.toBe(0);
  injector.disarm();
  injector.close();

  const second = await spawnWitness(dataDir, logs);
  const size = await second.size(tree);
  expect([3, 4]).toContain(size);
  await second.expectCosigned(await second.add(tree.body(size, 5)), tree, 5);
});
