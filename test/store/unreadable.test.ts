/** Reads that LMDB refuses are errors of the log, whatever is read, and never "there is nothing". */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import type { Store } from "#cairnlog/engine/store/contract.js";
import { openStore } from "#cairnlog/engine/store/store.js";

const READS: Readonly<Record<string, (store: Store) => unknown>> = {
  "a row": (store) => store.get("meta", "log"),
  "rows of a table": (store) => [...store.range("keys")],
  "keys of a table": (store) => [...store.keys("keys")],
  "a batch": (store) => store.batchAt(0),
  "the newest batch": (store) => store.lastBatch(),
  "the batches": (store) => [...store.batchKeys()],
  "a tile": (store) => store.tile(2, 0, 0),
  "a tile in place": (store) => store.tileView(2, 0, 0),
  "the tiles": (store) => [...store.tileKeys()],
  "the position": (store) => store.position(),
  "a moment": (store) => store.snapshot(),
  "another moment for all reads": (store) => store.pin(),
  "the runs of postings": (store) => store.postings.runIds(),
  "a run": (store) => store.postings.run(1),
  "a block of a run": (store) => store.postings.block(1, 0),
};

// LMDB gives no reading transaction for an environment that is closed, as for one whose write failed.
test.each(Object.entries(READS))("%s", async (_, read) => {
  const path = mkdtempSync(join(tmpdir(), "cairnlog-"));
  const store = openStore({ path });
  store.postings.runIds();
  // It must not know why.
  vi.spyOn(store.health, "closed").mockImplementation(() => {});
  await store.close();
  // The reading transaction of this turn is given back when the turn ends.
  await sleep(5);
  expect(() => read(store)).toThrow(expect.objectContaining({ name: "CairnlogError", code: "storage-failed" }));
  rmSync(path, { recursive: true });
});
