/** How a log begins to be written, over a store that is open. */
import { closeAfter } from "../base/closing.js";
import { CairnlogError } from "../base/error.js";
import { createDigests, type DigestName } from "../crypto/digests.js";
import { importPublicKey } from "../crypto/keys/spki.js";
import type { Pool } from "../crypto/pool/pool.js";
import type { Signer } from "../crypto/signer/operator-key.js";
import { checkAlone, type Journal, localJournal } from "../journal/ledger.js";
import type { WriterLock } from "../store/lmdb/writerlock.js";
import { MIGRATIONS, migrate } from "../store/migrations.js";
import type { LogMeta } from "../store/schema/rows.js";
import type { Store, StoreReader } from "../store/store.js";
import { refilingFor } from "./apply/derive.js";
import type { Erasure } from "./history/erase.js";
import { Operators } from "./operator/operators.js";
import { type Clock, ClockGuard, clockFile, wholeMicros } from "./state/clock.js";
import { type BudgetLimits, NO_BUDGETS } from "./state/executor.js";
import { noProjection, type Projection } from "./state/projection.js";
import { type AppendCondition, DEFAULT_QUEUE_LIMIT } from "./write/sequencer.js";
import { LogWriter } from "./writer.js";

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

/** `openLog` over a store that is open already; the log's `close` releases `lock`. */
export async function startLog(
  store: Store,
  options: LogOptions,
  lock: WriterLock = NO_LOCK,
  migrations = MIGRATIONS,
): Promise<LogWriter> {
  try {
    const { path, signer, projection = noProjection, digests, pool, mapSize } = options;
    if (!options.journal) checkAlone(store, path);
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
      clock: options.clock ? wholeMicros(options.clock) : clockGuard!.now,
      clockGuard,
      secondaryDigests: digests && digests.length !== 0 ? await createDigests(digests) : null,
      queueLimit: options.queueLimit ?? DEFAULT_QUEUE_LIMIT,
      budgets: options.budgets ?? NO_BUDGETS,
      standing: options.standing,
    });
    await log.recover();
    if (!options.standing) await log.begin(options.name);
    log.watchClock();
    return log;
  } catch (error) {
    return closeAfter(error, () => store.close());
  }
}

const NO_LOCK: WriterLock = { release: async () => {} };

/** What the log knows of itself, when its rows can be read; undefined for a log that does not exist yet. */
export function soundMeta(store: StoreReader, path: string): LogMeta | undefined {
  const meta = store.get("meta", "log");
  // A migration that was interrupted begins again.
  if (meta?.rebuilding && !meta.migrating)
    throw new CairnlogError(
      "corrupt-log",
      `A rebuild of the log in ${path} was interrupted. Finish it: cairnlog fsck --rebuild.`,
    );
  return meta;
}
