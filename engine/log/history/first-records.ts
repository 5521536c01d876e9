/**
 * Gives a log to the journal of several nodes: all that it is so far becomes records. Afterwards the log in this directory
 * stands behind the newest record, and every other node makes its own from the journal. And takes it out again.
 *
 * If we crash after the journal was made, and before this directory knows it, the directory is not used by a node any more:
 * a new node with an empty one has the same log.
 */

import { closeAfter, closing } from "../../base/closing.js";
import { CairnlogError } from "../../base/error.js";
import { isPresent } from "../../base/files.js";
import { importPublicKey } from "../../crypto/keys/spki.js";
import { isOfNode } from "../../journal/ledger.js";
import type { RecordedChange } from "../../journal/rows.js";
import { type JournalPosition, NO_HASH } from "../../store/changeset.js";
import { takeWriterLock } from "../../store/lmdb/writerlock.js";
import type { Batch } from "../../store/schema/batch.js";
import type { LogMeta } from "../../store/schema/rows.js";
import { FORMAT, PRIVATE_TABLES } from "../../store/schema/schema.js";
import type { Store } from "../../store/store.js";
import { Operators } from "../operator/operators.js";
import { formatTimestamp, systemClock } from "../state/clock.js";
import { noProjection, type Projection } from "../state/projection.js";
import { openErased } from "./erase.js";

/** A log as records begin with it. */
interface BeginningOfRecords {
  /** Rows of the first record. */
  readonly rows: readonly RecordedChange[];
  /** Packed batches, oldest first. */
  readonly batches: Iterable<{ readonly firstIndex: number; readonly packed: Buffer; readonly count: number }>;
}

interface BeginningOptions {
  /** Directory of the log, which no process may have open to write. It need not exist. */
  readonly path: string;
  /** PEM of the operator's public key. */
  readonly operatorKey: string;
  /** With which the log is opened. */
  readonly projection?: Projection;
  /** Settings that every node must have. */
  readonly settings: Readonly<Record<string, string>>;
}

/**
 * Reads the log, or begins an empty one, and has `make` make its journal.
 * @returns the number of entries
 * @throws CairnlogError `in-use`; `wrong-operator`; `precondition-failed` for a log that cannot be replicated; as `make`
 *   does, and then nothing was changed
 */
export async function beginRecords(
  { path, operatorKey, projection = noProjection, settings }: BeginningOptions,
  make: (beginning: BeginningOfRecords) => Promise<JournalPosition>,
): Promise<number> {
  const key = importPublicKey(operatorKey);
  if (!isPresent(`${path}/data.mdb`)) {
    const row = { format: FORMAT, key_id: key.fingerprint, created_at: formatTimestamp(systemClock()), settings };
    await make({ rows: [{ table: "meta", key: "log", row }], batches: [] });
    return 0;
  }
  const lock = await takeWriterLock(path);
  const store = await openErased({ path, projection }).catch((error) => closeAfter(error, () => lock.release()));
  const copy = async () => {
    const meta = store.get("meta", "log");
    if (!meta) throw new CairnlogError("precondition-failed", `The log in ${path} has not begun: remove it.`);
    const operators = Operators.read(store, meta, Operators.of(key));
    operators.checkCurrent(key.fingerprint);
    checkFit(store, meta, operators, path);
    const row = { ...inNoJournal(meta), settings };
    const position = await make({
      rows: [{ table: "meta", key: "log", row }, ...privateRows(store)],
      batches: batchesOf(store),
    });
    const last = store.lastBatch();
    const firstIndex = last ? last.firstIndex + last.count : 0;
    const after = store.position().sequence;
    await store.commit({ after, position, batches: [], rows: [{ table: "meta", key: "log", row }], tiles: [] });
    return firstIndex;
  };
  return closing(
    copy,
    () => store.close(),
    () => lock.release(),
  );
}

/**
 * Takes a log out of the journal of several nodes, so that one service writes it alone. Its entries, heads and rows stay.
 * @param path directory of the log, which no process may have open to write
 * @param check refuses the place in the journal that would be left
 * @throws CairnlogError `in-use`; `precondition-failed` for a log that is in no journal; as `check` does, and then nothing was
 *   changed
 */
export async function leaveRecords(path: string, check: (left: JournalPosition) => Promise<void>): Promise<void> {
  const lock = await takeWriterLock(path);
  let store: Store | undefined;
  const leave = async () => {
    // A complete copy without withheld payloads goes into place first: later it would take back that the log has left.
    store = await openErased({ path, projection: noProjection, keepsWithheld: true });
    const left = store.position();
    if (!isOfNode(store))
      throw new CairnlogError("precondition-failed", `The log in ${path} is not that of a node of a replicated log.`);
    await check(left);
    const position = { sequence: left.sequence + 1, epoch: left.epoch, hash: NO_HASH };
    const meta = store.get("meta", "log");
    const rows = meta ? [{ table: "meta" as const, key: "log", row: inNoJournal(meta) }] : [];
    await store.commit({ after: left.sequence, position, batches: [], rows, tiles: [] });
  };
  await closing(
    leave,
    () => store?.close(),
    () => lock.release(),
  );
}

const inNoJournal = ({ in_journal: _, ...meta }: LogMeta): LogMeta => meta;

function checkFit(store: Store, meta: LogMeta, operators: Operators, path: string): void {
  const refuse = (why: string) => new CairnlogError("precondition-failed", `The log in ${path} ${why}`);
  if (meta.rebuilding) throw refuse("is being rebuilt. Finish that: cairnlog fsck --rebuild.");
  if (meta.format !== FORMAT) throw refuse("is in an older format. Start the service once: it converts the log.");
  if (operators.rotations.length)
    throw refuse("has had more than one operator key, and nodes cannot follow such a log yet.");
  for (const index of store.batchKeys())
    if (!store.batchAt(index)?.headInfo)
      throw refuse("has imported entries without tree heads, which a node could not check.");
}

function* batchesOf(store: Store): BeginningOfRecords["batches"] {
  for (const firstIndex of [...store.batchKeys()]) {
    const batch = store.batchAt(firstIndex) as Batch;
    yield { firstIndex, packed: batch.packed, count: batch.count };
  }
}

const privateRows = (store: Store): RecordedChange[] =>
  PRIVATE_TABLES.flatMap((table) => [...store.range(table)].map(({ key, row }) => ({ table, key, row })));
