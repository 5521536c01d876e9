/**
 * The interface of a journal, which decides the fate of a commit. A record is *decided* when the journal says so, and
 * *applied* when it is in LMDB; only then is the commit visible to anybody. `Ledger` takes each record through both
 * steps. A log has one ledger, so only one record at a time is proposed.
 */

import { CairnlogError } from "../base/error.js";
import { isInJournal, type JournalPosition, NO_HASH, type RowChange, type TileChange } from "../store/changeset.js";
import type { Store } from "../store/contract.js";
import { type DerivedTable, isPublic, PRIVATE_TABLES } from "../store/schema/schema.js";
import type { JournalRecord } from "./record.js";
import type { RecordedChange } from "./rows.js";

/** A record that a journal has decided, and its hash; zeros from a journal that keeps no records as bytes. */
export interface Decided {
  readonly record: JournalRecord;
  readonly hash: Uint8Array;
  /** Present if its rows are all private rows there are: the others go when it is applied. */
  readonly replacesPrivateRows?: true;
}

export interface Journal {
  /** Present if it asks other machines, so that a record takes milliseconds, however small it is. */
  readonly isRemote?: true;

  /**
   * Decides a record.
   *
   * Durability: if this resolves to the record's hash, the record is in the journal, whatever fails afterwards, and no
   * other record will ever have its sequence. If it resolves to null, the record was refused: it is not in the journal
   * and never will be, because another record has its sequence, or another writer has the lead.
   *
   * If it rejects with `not-leader`, this node may no longer propose; the record may be in the journal.
   *
   * If it rejects otherwise, the outcome is unknown: the record may be in the journal, may get there later, or never. Then `tail`
   * must be read before another record is proposed. A record that is not in it may still arrive. In that case the next
   * record, which has the same sequence, is refused, and reading `tail` again shows why.
   *
   * Concurrency: one record at a time. Retry: not here; the log never proposes the same bytes twice.
   */
  propose(record: JournalRecord): Promise<Uint8Array | null>;

  /**
   * The decided records after `position`, in order; none if everything is applied. The caller checks them before it
   * applies them. May be called again at any time, also after it failed.
   */
  tail(position: JournalPosition): AsyncIterable<Decided>;

  /**
   * The place in the journal of a log that was made otherwise, such as one that was restored from a backup. Absent from a
   * journal that no log can be brought to.
   * @param size number of its entries, at least 1
   * @param digest of the newest one
   * @throws CairnlogError `corrupt-log` for a log that is not the beginning of the journal's
   */
  placeOf?(size: number, digest: Uint8Array): Promise<PlaceInJournal>;
}

/** A place in a journal, and the rows of a log that stands there. */
export interface PlaceInJournal {
  readonly position: JournalPosition;
  /** What the log is, and all of its private rows. */
  readonly rows: readonly RecordedChange[];
}

// The only writer of a log's store: gives each commit its number, asks the journal to decide it, and applies it.
// Everything in LMDB is written through here, except repairs of derived data (`check/repair.ts`).
//
// If we crash before the journal has decided, nothing happened. If we crash between the decision and the transaction,
// the next start finds the record in the journal's tail. The transaction itself is all or nothing.

/**
 * Checks that a record is the next one after `position`.
 * @throws CairnlogError `corrupt-log`
 */
export function checkNext(position: JournalPosition, record: JournalRecord): void {
  const { sequence, epoch, hash: previous } = position;
  const expected = sequence + 1;
  if (record.sequence !== expected)
    throw new CairnlogError(
      "corrupt-log",
      `The journal continues with record ${record.sequence} instead of ${expected}.`,
    );
  if (Buffer.compare(record.previous, previous) !== 0)
    throw new CairnlogError("corrupt-log", `Record ${expected} of the journal does not follow the record before it.`);
  if (record.epoch < epoch)
    throw new CairnlogError(
      "corrupt-log",
      `Record ${expected} of the journal is of epoch ${record.epoch}, which has ended: epoch ${epoch} has begun.`,
    );
}

/** The position behind a decided record, which must be the next one. @throws CairnlogError as `checkNext` does */
export function positionBehind(
  position: JournalPosition,
  { record, hash }: { readonly record: JournalRecord; readonly hash: Uint8Array },
): JournalPosition {
  checkNext(position, record);
  return { sequence: record.sequence, epoch: record.epoch, hash };
}

/** The content of a commit: a record without its place in the journal. */
export type Draft = Pick<JournalRecord, "firstIndex" | "batch" | "rows">;

/** Data derived from a record, and written with it. */
export interface Consequences {
  readonly rows: readonly RowChange<DerivedTable>[];
  readonly tiles: readonly TileChange[];
}

export class Ledger {
  readonly #store: Store;
  readonly #journal: Journal;
  #position: JournalPosition;

  constructor(store: Store, journal: Journal) {
    this.#store = store;
    this.#journal = journal;
    this.#position = store.position();
  }

  /** The newest applied record. */
  get position(): JournalPosition {
    return this.#position;
  }

  /**
   * Reads the position from disk again.
   * @throws CairnlogError `storage-failed` if it is before what this process has written: then LMDB shows an old state, and
   *   what was acknowledged since would be written over
   */
  restore(): void {
    const position = this.#store.position();
    const [shown, written] = [position.sequence, this.#position.sequence];
    if (shown < written)
      throw new CairnlogError(
        "storage-failed",
        `The data directory shows record ${shown}, and record ${written} was written. Stop the service, and start it again.`,
      );
    this.#position = position;
  }

  /**
   * Asks the journal to decide the next record.
   * @throws CairnlogError `not-leader` where another node writes the log; `storage-failed`. The journal may still have decided the record, unless it refused it: read
   *   `tail` before proposing the next one.
   */
  async decide(draft: Draft): Promise<Decided> {
    const { sequence, hash: previous, epoch } = this.#position;
    const record = { ...draft, sequence: sequence + 1, previous, epoch };
    let hash: Uint8Array | null;
    try {
      hash = await this.#journal.propose(record);
    } catch (cause) {
      if (cause instanceof CairnlogError && cause.code === "not-leader") throw cause;
      throw new CairnlogError("storage-failed", "The journal did not answer.", { cause });
    }
    if (!hash) throw new CairnlogError("storage-failed", "The journal has accepted the record of another writer.");
    return { record, hash };
  }

  /**
   * Writes decided records, which must be the next ones, and the data derived from them, in one transaction. Resolves
   * when all of it is on disk.
   * @param decided at least one; of these only the first may replace private rows
   * @throws CairnlogError `storage-failed`: they may still be on disk, so call `restore` before the next commit;
   *   `corrupt-log` if one is not the next record
   */
  async apply(decided: readonly Decided[], { rows, tiles }: Consequences): Promise<void> {
    const position = decided.reduce(positionBehind, this.#position);
    const { hash } = position;
    const gone = decided[0]!.replacesPrivateRows ? this.#privateRows() : [];
    const changes = {
      after: this.#position.sequence,
      position,
      batches: decided.flatMap(({ record: { firstIndex, batch } }) => (batch ? [{ firstIndex, batch }] : [])),
      rows: [...gone, ...decided.flatMap(({ record }) => record.rows), ...rows],
      tiles,
    };
    try {
      await this.#store.commit(changes);
    } catch (cause) {
      // Where LMDB itself decides, a record without room was never decided, and the caller is told that nothing was written.
      // A record that a journal keeps is decided, and will be there when there is room.
      const isDecided = Buffer.compare(hash, NO_HASH) !== 0;
      if (!isDecided && cause instanceof CairnlogError && cause.code === "storage-full") throw cause;
      throw new CairnlogError("storage-failed", "The data directory could not be written.", { cause });
    }
    this.#position = position;
  }

  /**
   * Has a log that was made without the journal stand at its place in it. The entries stay as they are.
   * @throws CairnlogError `storage-failed`
   */
  async adopt({ position, rows }: PlaceInJournal): Promise<void> {
    const after = this.#position.sequence;
    await this.#store.commit({ after, position, batches: [], rows: [...this.#privateRows(), ...rows], tiles: [] });
    this.#position = position;
  }

  /** Deletes every private row that there is now; what is written after that in the same transaction stays. */
  #privateRows(): RowChange[] {
    const secret = PRIVATE_TABLES.filter((table) => !isPublic(table));
    return secret.flatMap((table) => [...this.#store.keys(table)].map((key) => ({ table, key, row: undefined })));
  }

  /** The records that are decided but not applied. */
  tail(): AsyncIterable<Decided> {
    return this.#journal.tail(this.#position);
  }
}

/** Commits rows that are not derived from entries to a log of `size` entries. @throws as the ledger does */
export async function commitRows(ledger: Ledger, size: number, rows: readonly RecordedChange[]): Promise<void> {
  await ledger.apply([await ledger.decide({ firstIndex: size, batch: null, rows })], NOTHING);
}

const NOTHING: Consequences = { rows: [], tiles: [] };

// The journal of a log on one machine: LMDB itself. The transaction that applies a record also decides it: it changes
// the position only if the position is the one that the writer knows (`Store.commit`). So there is nothing to encode,
// no second write to wait for, and nothing to catch up with: every decided record is applied.

/** Whether a log is that of a node, or was restored from the backup of one. */
export const isOfNode = (store: Pick<Store, "position" | "get">): boolean =>
  isInJournal(store.position()) || store.get("meta", "log")?.in_journal === true;

/**
 * Checks that a log is in no journal of several nodes, which entries made without it would fork.
 * @param path directory of the log
 * @throws CairnlogError `precondition-failed`
 */
export function checkAlone(store: Pick<Store, "position" | "get">, path: string): void {
  if (!isOfNode(store)) return;
  throw new CairnlogError(
    "precondition-failed",
    `The log in ${path} is that of a node of a replicated log, which an entry made here alone would fork. Set SERVICE_REPLICATION, send what is the operator's to the leader (--server), or leave the replicated log first: cairnlog replicate leave.`,
  );
}

export const localJournal: Journal = {
  propose: async () => NO_HASH,
  async *tail() {},
};
