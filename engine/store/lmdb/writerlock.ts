/**
 * Lets only one process at a time write a log. A writer keeps a slot in the reader table of a small environment beside
 * the log's own. The kernel holds a lock for each slot and drops it when the process ends for any reason, so no slot is
 * ever stale. Readers of the log, such as a backup, take no slot.
 *
 * This only gives people an early error message. The condition on every commit (`Store.commit`) is what keeps a log
 * from having two histories.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { RootDatabase, Transaction } from "lmdb";
import { CairnlogError } from "../../base/error.js";
import { open } from "../../native/lmdb.js";
import { FILE_MODE, giveFilesToOwner } from "./environment.js";
import { DATA_FILE, inspectEnvironment } from "./inspect.js";
import { preflight, requireWritable } from "./preflight.js";
import { makePrivateFolder } from "./private.js";

/** The environment holds no data. */
const MAP_SIZE = 2 ** 20;
const PLACE = /^\s*(\d+)\s/gm;

export interface WriterLock {
  /** Frees the slot. A second call does nothing. */
  release(): Promise<void>;
}

/**
 * Takes the writer's slot of the log in the directory `path`.
 * @throws CairnlogError `in-use` if another process has it, or this one already; `storage-failed` if the environment cannot be opened
 */
export async function takeWriterLock(path: string): Promise<WriterLock> {
  const env = openLock(path);
  const place = await placeIn(env, path);
  let isHeld = true;
  const release = async () => {
    if (!isHeld) return;
    isHeld = false;
    place.done();
    await env.close();
  };
  // We look only after taking our own slot: if two processes start at the same time, at least one sees the other.
  env.readerCheck();
  const holders = [...env.readerList().matchAll(PLACE)].map(([, pid]) => Number(pid));
  const other = holders.find((pid) => pid !== process.pid);
  if (other === undefined && holders.length === 1) return { release };
  await release();
  const reason =
    other === undefined
      ? `The log in ${path} is open to write in this process already. Use that one, or close it first.`
      : `The log in ${path} is in use by process ${other}. Only one process may write it: stop that one first.`;
  throw new CairnlogError("in-use", reason);
}

/** @throws CairnlogError `storage-failed` where the system gives no memory or no lock for the slot */
async function placeIn(env: RootDatabase, path: string): Promise<Transaction> {
  try {
    return env.useReadTransaction();
  } catch (cause) {
    await env.close();
    const { message } = cause as Error;
    throw new CairnlogError("storage-failed", `The lock in ${path}/writer cannot be taken: ${message}.`, { cause });
  }
}

/** Opens the environment, or makes it. */
function openLock(path: string): RootDatabase {
  const folder = `${path}/writer`;
  try {
    makePrivateFolder(folder);
    requireWritable(folder);
    // The data file is never flushed, so a power failure may leave anything in it. It holds nothing. The slots are in
    // the file beside it, so a process that has the old file open is still seen.
    const { state } = inspectEnvironment(folder, { maxFaults: 1 });
    if (state === "damaged" || state === "unborn") rmSync(join(folder, DATA_FILE));
    preflight({ path: folder, mapSize: MAP_SIZE, readOnly: false, isNew: state !== "sound" });
    const env = open({ path: folder, mapSize: MAP_SIZE, ...FILE_MODE, overlappingSync: false });
    giveFilesToOwner(folder);
    return env;
  } catch (cause) {
    const { message } = cause as Error;
    throw new CairnlogError("storage-failed", `The lock in ${folder} cannot be opened: ${message}.`, { cause });
  }
}
