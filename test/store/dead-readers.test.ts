/**
 * A process that reads and is killed keeps no page from being used again: its place among the readers is taken in every file
 * that it had open.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect, test, vi } from "vitest";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, temporaryFolder } from "../log/harness.js";

const WRITES = 8;
/** Milliseconds in which the writer looks for readers that are gone. */
const CLEARING_MS = 5_000;

afterEach(() => {
  vi.useRealTimers();
});

const READER = `
import { openStore } from "#cairnlog/engine/store/store.js";
const store = openStore({ path: process.argv[1], readOnly: true, isInspected: true, mapSize: ${MAP_SIZE} });
store.pin();
console.log("pinned");
setInterval(() => store, 1_000);
`;

async function pinnedProcess(path: string) {
  const child = spawn(process.execPath, ["--input-type=module", "-e", READER, path], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  return child;
}

const WRITERS: Readonly<Record<string, (store: Store, n: number) => Promise<void>>> = {
  entries: (store, n) =>
    store.commit({
      ...{ after: 0, position: null, batches: [], tiles: [] },
      rows: [{ table: "trustConfigHeads", key: `${n}`, row: { id: n } }],
    }),
  postings: (store, n) => store.postings.writeBlocks(n, [[0, Buffer.alloc(24)]]),
};

test.each(Object.keys(WRITERS))("a killed reader is forgotten by the file of %s", async (name) => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const path = temporaryFolder();
  const store = openStore({ path, mapSize: MAP_SIZE });
  for (const write of Object.values(WRITERS)) await write(store, 0);
  const child = await pinnedProcess(path);
  for (let n = 1; n <= WRITES; n++) await WRITERS[name]!(store, n);
  vi.advanceTimersByTime(CLEARING_MS);
  expect(store.usage().oldestReader).toBeGreaterThanOrEqual(WRITES);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(store.usage().oldestReader).toBeGreaterThanOrEqual(WRITES);
  vi.advanceTimersByTime(CLEARING_MS);
  // The test's own reads end with their turn.
  await expect.poll(() => store.usage().oldestReader).toBeLessThan(WRITES);
  await store.close();
});
