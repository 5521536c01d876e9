/** The task of the pool that verifies one stretch of a log. */
import { yieldToOthers } from "../../base/turns.js";
import { openStore, type Store } from "../../store/store.js";
import { type ChunkReport, type ChunkTask, checkChunk } from "./chunk.js";

/** The only environment that this worker has open. */
let open: { readonly path: string; readonly store: Store } | null = null;

/** The environment is shared with the writer in this process; a worker keeps the last one that it opened. */
async function storeAt(path: string, mapSize: number | undefined): Promise<Store> {
  if (open?.path === path) return open.store;
  await open?.store.close();
  const options = { path, readOnly: true, isInspected: true };
  open = { path, store: openStore(mapSize === undefined ? options : { ...options, mapSize }) };
  return open.store;
}

export async function verifyChunk(task: ChunkTask): Promise<ChunkReport> {
  if (task.yields) yieldToOthers();
  const store = await storeAt(task.path, task.mapSize);
  store.refresh();
  try {
    if (task.derivedPath === undefined) return checkChunk(store, task);
    // A scratch environment, which is removed after the check, so it is not kept open.
    const derived = openStore({ path: task.derivedPath, readOnly: true, isInspected: true });
    try {
      return checkChunk(store, task, derived);
    } finally {
      await derived.close();
    }
  } finally {
    // An idle worker has no timer in which lmdb would give the transaction back. While it is kept, the writer uses no page
    // again that was freed since, and the file grows 14 times as fast.
    store.refresh();
  }
}
