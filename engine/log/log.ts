/**
 * The embeddable log: append, read, prove, verify, close. No HTTP, no environment variables, no process-wide state; any
 * number of logs in one process.
 */
import { existsSync } from "node:fs";
import { closeAfter } from "../base/closing.js";
import { CairnlogError } from "../base/error.js";
import { takeWriterLock } from "../store/lmdb/writerlock.js";
import { checkConverted } from "../store/migrations.js";
import { openStore } from "../store/store.js";
import { LogFollower, type WriterLink } from "./follow/follower.js";
import { openErased } from "./history/erase.js";
import { type LogOptions, soundMeta, startLog } from "./start.js";
import { checkPath, checkSigner, checkText } from "./state/given.js";
import { noProjection } from "./state/projection.js";
import { LogReader } from "./view/reader.js";
import type { LogView } from "./view/view.js";
import type { LogWriter } from "./writer.js";

/** A log to be read. */
export type Log = LogView;

export interface LogReaderOptions extends Pick<LogOptions, "path" | "projection" | "pool" | "mapSize"> {
  /** PEM of the public key that signs this log's heads, or of another one in the chain of its operator keys. */
  readonly operatorKey: string;
}

interface LogFollowerOptions extends Omit<LogReaderOptions, "pool"> {
  /** The way to the writer. */
  readonly writer: WriterLink;
}

/**
 * Opens or creates a log to be written and read. The time this takes does not depend on the size of the log, unless payloads
 * have been withheld since the last opening: then they are taken from the disk (`history/erase.ts`).
 * @throws CairnlogError `storage-failed`, `corrupt-log`; `wrong-operator` when another key signed this log's heads;
 *   `in-use` when it is open to write already, in another process or in this one; `invalid-input` without path or signer;
 *   `precondition-failed` without the journal of a log that is in one
 */
export async function openLog(options: LogOptions): Promise<LogWriter> {
  checkPath("openLog", options);
  checkSigner("openLog", options.signer);
  // Nothing is more than NaN, and nothing less: such a limit would bound nothing.
  for (const option of ["queueLimit", "minFreeBytes"] as const)
    if (!((options[option] ?? 0) >= 0))
      throw new CairnlogError("invalid-input", `\`${option}\` takes a number from 0 on.`);
  const lock = await takeWriterLock(options.path);
  try {
    const { projection = noProjection } = options;
    return await startLog(await openErased({ ...options, projection }), options, lock);
  } catch (error) {
    return closeAfter(error, () => lock.release());
  }
}

/**
 * Opens a log that another thread or process writes, to be read. It shows the moment of the call until `refresh`.
 * @throws CairnlogError `not-found` when it is not there; `invalid-key`; `precondition-failed` for a log of an older format, which
 *   its writer converts; otherwise as `openLog` does
 */
export async function openLogReader(options: LogReaderOptions): Promise<LogReader> {
  checkPath("openLogReader", options);
  checkText("openLogReader", "operatorKey", options.operatorKey, "the operator's public key as PEM");
  const { path, operatorKey, projection = noProjection, pool, mapSize } = options;
  if (!existsSync(path)) throw new CairnlogError("not-found", `There is no log in ${path} to be read.`);
  const store = openStore({ path, readOnly: true, ...(mapSize === undefined ? {} : { mapSize }) });
  try {
    store.pin();
    const meta = soundMeta(store, path);
    if (!meta) throw new CairnlogError("not-found", `There is no log in ${path} to be read yet.`);
    checkConverted(meta);
    return new LogReader({ path, store, projection, operatorKey, pool, mapSize });
  } catch (error) {
    return closeAfter(error, () => store.close());
  }
}

/**
 * Opens a log that another thread of this process has open to write, to be read as the writer tells (`LogWriter.feed`). What
 * it tells from before this call on must reach `LogFollower.follow`, in order.
 * @throws CairnlogError as `openLog` does
 */
export function openLogFollower(options: LogFollowerOptions): LogFollower {
  const { path, operatorKey, projection = noProjection, mapSize, writer } = options;
  // The writer has looked at the files, and has them open.
  const store = openStore({ path, readOnly: true, isInspected: true, ...(mapSize === undefined ? {} : { mapSize }) });
  return new LogFollower({ path, store, projection, operatorKey, writer, mapSize });
}
