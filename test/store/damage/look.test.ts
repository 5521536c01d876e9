/** The check of a file does not mistake a writer's work for damage. */
import { mkdtempSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { inspectEnvironment } from "#cairnlog/engine/store/lmdb/inspect.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { anyEvent } from "../../anyevent.js";
import { PAGE, usedBytes } from "./damages.js";

const folder = mkdtempSync(join(tmpdir(), "cairnlog-look-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const signer = operatorKey(generatePrivateKey("ed25519"));

test("a file that is being written is sound", async () => {
  const path = join(folder, "written");
  const log = await openLog({ path, signer });
  const states = new Set<string>();
  for (let round = 0; round < 60; round++) {
    const text = "x".repeat((round * 331) % 5_000);
    const appended = [1, 2, 3].map(() => log.append([anyEvent({ text }), anyEvent()]));
    let isDone = false;
    const all = Promise.all(appended).then(() => {
      isDone = true;
    });
    // LMDB writes in its own thread, also while this one checks the file.
    while (!isDone) {
      states.add(inspectEnvironment(path, { maxFaults: 1 }).state);
      await new Promise(setImmediate);
    }
    await all;
  }
  await log.close();
  expect([...states]).toEqual(["sound"]);
});

test("a file may end before its last page, if the pages behind its end are free", async () => {
  const path = join(folder, "shorter");
  const store = openStore({ path });
  const put = (count: number, row: object | undefined) => {
    const rows = Array.from({ length: count }, (_, id) => ({ table: "users", key: `user ${id}`, row }) as never);
    return store.commit({ after: 0, position: null, batches: [], rows, tiles: [] });
  };
  await put(200, { display_name: "x".repeat(900) });
  await put(200, undefined);
  // These use the first free pages, so the last page stays the same.
  for (let i = 0; i < 8; i++) await put(1, { display_name: `${i}` });
  await store.close();
  const file = join(path, "data.mdb");
  expect(inspectEnvironment(path, { maxFaults: 1 }).state).toBe("sound");
  // LMDB leaves such a file when a transaction takes pages and gives them back.
  const states: string[] = [];
  for (let bytes = usedBytes(readFileSync(file)); bytes > 2 * PAGE; bytes -= PAGE) {
    truncateSync(file, bytes);
    states.push(inspectEnvironment(path, { maxFaults: 1 }).state);
  }
  const sound = states.lastIndexOf("sound");
  expect(sound).toBeGreaterThan(0);
  expect(states).toEqual(states.map((_, i) => (i <= sound ? "sound" : "damaged")));
});
