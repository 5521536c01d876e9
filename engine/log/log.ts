/**
 * The embeddable log: append, read, prove, verify, close. No HTTP, no environment variables, no process-wide state; any
 * number of logs in one process.
 */
import { existsSync } from "node:fs";
import { CairnlogError } from "../base/error.js";
import { createDigests, type DigestName } from "../crypto/digests.js";
import { importPublicKey } from "../crypto/keys/spki.js";
import type { Pool } from "../crypto/pool/pool.js";
import type { Journal } from "../journal/journal.js";
import { localJournal } from "../journal/local.js";
import { takeWriterLock, type WriterLock } from "../store/lmdb/writerlock.js";
import { checkFormat, MIGRATIONS, migrate } from "../store/migrations.js";
import type { LogMeta } from "../store/schema/rows.js";
import { openStore, type Store, type StoreReader } from "../store/store.js";
import { refilingFor } from "./apply/derive.js";
import { LogFollower, type WriterLink } from "./follow/follower.js";
import { type Erasure, openErased } from "./history/erase.js";
import { Operators } from "./operator/operators.js";
import type { Clock } from "./state/clock.js";
import { ClockGuard, clockFile } from "./state/clockguard.js";
import { type BudgetLimits, NO_BUDGETS } from "./state/payer.js";
import { noProjection, type Projection } from "./state/projection.js";
import type { Signer } from "./state/signer.js";
import { LogReader } from "./view/reader.js";
import type { LogView } from "./view/view.js";
import { type AppendCondition, DEFAULT_QUEUE_LIMIT } from "./write/sequencer.js";
import { LogWriter } from "./writer.js";

/** A log to be read. */
export type Log = LogView;

export interface LogOptions extends Erasure {
  /** Directory of the log; created when it does not exist. One process at a time may write it. */
  readonly path: string;
  /** Signs the tree heads. `operatorKey` and `openOperatorKey` make one; its public key is needed to verify. */
  readonly signer: Signer & { readonly public: { readonly pem: string } };
  /** State that follows from entries. */
  readonly projection?: Projection;
  /** Digests kept beside SHA-256 in `entry_hashes`. */
  readonly digests?: readonly DigestName[];
  /** Worker threads that verify; without it, each verification starts some that let all others go first, and ends them. */
  readonly pool?: Pool;
  /** Appends that may wait; beyond it they are refused with `overloaded`. */
  readonly queueLimit?: number;
  /** Bytes of address space, and the size the data can grow to. */
  readonly mapSize?: number;
  /** Free bytes of the disk below which appends are refused with `storage-full`; 64 MiB if absent. */
  readonly minFreeBytes?: number;
  /** Bytes that payers may have stored in 24 hours; any number if absent. */
  readonly budgets?: BudgetLimits;
  /** The time of entries. Without it, the clock of the machine, which is taken only while it can be right. */
  readonly clock?: Clock;
  /** Name that the log takes if it is created now (`LogMeta.name`). */
  readonly name?: string;
  /** Decides what is appended; the log's own environment when absent. */
  readonly journal?: Journal;
  /** For a log that several nodes keep: whether this one may append. Its first record is made elsewhere. */
  readonly standing?: AppendCondition;
}

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
 *   `in-use` when it is open to write already, in another process or in this one; `invalid-input` without path or signer
 */
export async function openLog(options: LogOptions): Promise<LogWriter> {
  checkText("openLog", "path", options?.path, "the directory of the log");
  const { signer } = options;
  if (typeof signer?.sign !== "function" || typeof signer.public?.pem !== "string")
    throw new CairnlogError(
      "invalid-input",
      "openLog needs `signer`, a key that signs tree heads: openOperatorKey(file) makes one.",
    );
  const lock = await takeWriterLock(options.path);
  try {
    const { projection = noProjection } = options;
    return await startLog(await openErased({ ...options, projection }), options, lock);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/**
 * Opens a log that another thread or process writes, to be read. It shows the moment of the call until `refresh`.
 * @throws CairnlogError `not-found` when it is not there; `invalid-key`; otherwise as `openLog` does
 */
export async function openLogReader(options: LogReaderOptions): Promise<LogReader> {
  checkText("openLogReader", "path", options?.path, "the directory of the log");
  checkText("openLogReader", "operatorKey", options.operatorKey, "the operator's public key as PEM");
  const { path, operatorKey, projection = noProjection, pool, mapSize } = options;
  if (!existsSync(path)) throw new CairnlogError("not-found", `There is no log in ${path} to be read.`);
  const store = openStore({ path, readOnly: true, ...(mapSize === undefined ? {} : { mapSize }) });
  try {
    store.pin();
    const meta = soundMeta(store, path);
    if (!meta) throw new CairnlogError("not-found", `There is no log in ${path} to be read yet.`);
    checkFormat(meta, MIGRATIONS.length + 1);
    return new LogReader({ path, store, projection, operatorKey, pool, mapSize });
  } catch (error) {
    await store.close();
    throw error;
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

/** `openLog` over a store that is open already; the log's `close` releases `lock`. */
export async function startLog(
  store: Store,
  options: LogOptions,
  lock: WriterLock = NO_LOCK,
  migrations = MIGRATIONS,
): Promise<LogWriter> {
  try {
    const { path, signer, projection = noProjection, digests, pool, mapSize } = options;
    const meta = soundMeta(store, path);
    if (meta) {
      const operators = Operators.read(store, meta, Operators.of(importPublicKey(signer.public.pem)));
      operators.checkCurrent(signer.fingerprint);
    }
    if (meta) await migrate(store, meta, refilingFor(projection), migrations);
    const clockGuard = options.clock ? null : new ClockGuard(clockFile(path));
    const log = new LogWriter({
      path,
      store,
      lock,
      signer,
      projection,
      operatorKey: signer.public.pem,
      pool,
      mapSize,
      journal: options.journal ?? localJournal,
      clock: options.clock ?? clockGuard!.now,
      clockGuard,
      secondaryDigests: digests?.length ? await createDigests(digests) : null,
      queueLimit: options.queueLimit ?? DEFAULT_QUEUE_LIMIT,
      budgets: options.budgets ?? NO_BUDGETS,
      standing: options.standing,
    });
    await log.recover();
    if (!options.standing) await log.begin(options.name);
    log.watchClock();
    return log;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** A program in JavaScript may have left it out. @throws CairnlogError `invalid-input` */
function checkText(caller: string, option: string, value: unknown, what: string): void {
  if (typeof value === "string" && value !== "") return;
  throw new CairnlogError("invalid-input", `${caller} needs \`${option}\`, ${what}.`);
}

const NO_LOCK: WriterLock = { release: async () => {} };

/** What the log knows of itself, when its rows can be read; undefined for a log that does not exist yet. */
function soundMeta(store: StoreReader, path: string): LogMeta | undefined {
  const meta = store.get("meta", "log");
  // A migration that was interrupted begins again.
  if (meta?.rebuilding && !meta.migrating)
    throw new CairnlogError(
      "corrupt-log",
      `A rebuild of the log in ${path} was interrupted. Finish it: cairnlog fsck --rebuild.`,
    );
  return meta;
}
