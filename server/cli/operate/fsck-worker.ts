/**
 * The check of a log in a process of its own, started by `cairnlog fsck`. LMDB trusts the file: what is wrong in it may
 * end this process with a signal, and then `cairnlog fsck` still reports it.
 */

import { closing } from "../../../engine/base/closing.js";
import { CairnlogError, type ErrorCode } from "../../../engine/base/error.js";
import { createPool } from "../../../engine/crypto/pool/pool.js";
import { type FilesCheck, removePostings, withFiles } from "../../../engine/log/check/files.js";
import { checkLog, type LogCheckOptions, type LogCheckReport } from "../../../engine/log/check/fsck.js";
import { rebuildLog } from "../../../engine/log/check/repair.js";
import { projection } from "../../../engine/registry/events/projection.js";
import { PRIVATE_CHECKS } from "../../../engine/registry/privatechecks.js";
import { openStore } from "../../../engine/store/store.js";

/** What the worker is told to do. The one who sends it holds the writer's slot. */
export interface FsckTask extends Pick<LogCheckOptions, "path" | "operatorKey" | "published" | "checkpoints"> {
  readonly files: FilesCheck;
  readonly isToRebuild: boolean;
}

/** The report, and the one after rebuilding if there was something to rebuild. */
export interface FsckResult {
  readonly before: LogCheckReport;
  readonly after: LogCheckReport | null;
}

/** What the worker sends. The last message is not `progress`. */
export type FsckMessage =
  | { readonly progress: Parameters<NonNullable<LogCheckOptions["progress"]>> }
  | { readonly result: FsckResult }
  | { readonly refused: { readonly code: ErrorCode; readonly message: string } }
  | { readonly failed: string };

async function run({ files, isToRebuild, ...task }: FsckTask, signal: AbortSignal): Promise<FsckResult> {
  const store = openStore({ path: task.path, isInspected: files.log === "damaged" });
  const pool = createPool();
  const progress = (...about: Parameters<NonNullable<LogCheckOptions["progress"]>>) => send({ progress: about });
  const options = { ...task, projection, privateChecks: PRIVATE_CHECKS, pool, progress, signal };
  const skipsPostings = files.postings === "damaged";
  const work = async () => {
    const before = withFiles(await checkLog(store, { ...options, skipsPostings }), files);
    if (!isToRebuild || !before.counts.derived || before.counts.entries) return { before, after: null };
    // A damaged file must not be opened, not even to be emptied.
    if (skipsPostings) removePostings(task.path);
    return { before, after: await rebuildLog(store, before, options) };
  };
  return closing(
    work,
    () => pool.close(),
    () => store.close(),
  );
}

const send = (message: FsckMessage): void => {
  process.send!(message);
};

function outcomeOf(error: unknown): FsckMessage {
  if (!(error instanceof CairnlogError)) return { failed: (error as Error).message };
  return { refused: { code: error.code, message: error.message } };
}

// Whoever started this process says when to stop: a terminal sends its signals to both.
process.on("SIGINT", () => {}).on("SIGTERM", () => {});
const stop = new AbortController();
const interrupt = () => stop.abort(new CairnlogError("closed", "Interrupted."));
process.once("disconnect", interrupt);
process.once("message", (task: FsckTask) => {
  process.once("message", interrupt);
  run(task, stop.signal)
    .then((result): FsckMessage => ({ result }), outcomeOf)
    .then((last) => process.send?.(last, () => process.disconnect()));
});
