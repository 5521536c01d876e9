/** A process that opens too many logs gets an error. Without it, LMDB ends the process with SIGSEGV. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterAll, expect, test } from "vitest";
import type { Store } from "#cairnlog/engine/store/contract.js";
import { openStore } from "#cairnlog/engine/store/store.js";

const folder = mkdtempSync(join(tmpdir(), "cairnlog-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Two maps of 8 TiB: three fit into the 64 TiB that a process may use, with what Node itself takes. */
const MAP_SIZE = 2 ** 43;

function opened(name: string): Store {
  const store = openStore({ path: join(folder, name), mapSize: MAP_SIZE });
  try {
    store.postings.runIds();
  } catch (error) {
    void store.close();
    throw error;
  }
  return store;
}

const refused = expect.objectContaining({
  name: "CairnlogError",
  code: "storage-failed",
  message: expect.stringMatching(/too many logs open: [\d.]+ TiB .*, 8 TiB more are needed, and 64 TiB are the most/),
});

test("what is beyond 64 TiB of maps is refused, and possible again when another log was closed", async () => {
  const stores = ["a", "b", "c"].map(opened);
  expect(() => opened("d")).toThrow(refused);
  // What is open goes on.
  for (const store of stores) expect(store.postings.runIds()).toEqual([]);
  await stores.pop()!.close();
  stores.push(opened("d"));
  expect(() => opened("e")).toThrow(refused);
  for (const store of stores) await store.close();
});

test("logs that another thread has open count as well", async () => {
  const path = (name: string) => JSON.stringify(join(folder, name));
  const source = `
    const { parentPort } = require("node:worker_threads");
    import(${JSON.stringify(import.meta.resolve("#cairnlog/engine/store/store.js"))}).then(({ openStore }) => {
      const stores = [${["f", "g", "h"].map(path).join()}].map((path) => openStore({ path, mapSize: ${MAP_SIZE} }));
      for (const store of stores) store.postings.runIds();
      parentPort.once("message", async () => {
        for (const store of stores) await store.close();
        parentPort.postMessage("closed");
      });
      parentPort.postMessage("opened");
    });`;
  const worker = new Worker(source, { eval: true });
  const answer = () => new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
  expect(await answer()).toBe("opened");
  expect(() => opened("i")).toThrow(refused);
  const closing = answer();
  worker.postMessage("close");
  expect(await closing).toBe("closed");
  await opened("i").close();
  await worker.terminate();
});

test.each([Number.NaN, 0, -5, "1"])("a map of %s bytes is refused", (mapSize) => {
  const path = join(folder, "j");
  const wrong = expect.objectContaining({ name: "CairnlogError", code: "invalid-input" });
  expect(() => openStore({ path, mapSize: mapSize as never })).toThrow(wrong);
});
