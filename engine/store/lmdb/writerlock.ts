/**
 * Who may write a log: one process at a time. A writer keeps a place in the reader table of a small environment beside
 * the log's own. The kernel holds a lock for each such place and drops it when the process ends, however it ends, so no
 * place is ever stale. Readers of the log, such as a backup, take none.
 *
 * It is a courtesy to people: what keeps a log from two histories is the condition on every batch (`Store.commit`).
 */
import { open } from "lmdb";
import { CairnlogError } from "../../error.js";
import { makePrivateFolder } from "../private.js";
import { FILE_MODE } from "./environment.js";

/** It holds nothing. */
const MAP_SIZE = 2 ** 20;
const PLACE = /^\s*(\d+)\s/gm;

export interface WriterLock {
  /** Does nothing the second time. */
  release(): Promise<void>;
}

/**
 * Takes the place of the writer of the log in the directory `path`.
 * @throws CairnlogError `in-use` when another process has it
 */
export async function takeWriterLock(path: string): Promise<WriterLock> {
  const folder = `${path}/writer`;
  makePrivateFolder(folder);
  const env = open({ path: folder, mapSize: MAP_SIZE, ...FILE_MODE });
  const place = env.useReadTransaction();
  let isHeld = true;
  const release = async () => {
    if (!isHeld) return;
    isHeld = false;
    place.done();
    await env.close();
  };
  // Only now: of two that come at one time, at least one sees the other.
  env.readerCheck();
  const others = [...env.readerList().matchAll(PLACE)]
    .map(([, pid]) => Number(pid))
    .filter((pid) => pid !== process.pid);
  if (others.length) {
    await release();
    throw new CairnlogError(
      "in-use",
      `The log in ${path} is in use by process ${others[0]}. Only one process may write it: stop that one first.`,
    );
  }
  return { release };
}
