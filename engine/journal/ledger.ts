/**
 * The only writer of a log's store: gives each commit its number, asks the journal to decide it, and applies it.
 * Everything in LMDB is written through here, except repairs of derived data (`check/repair.ts`).
 *
 * If we crash before the journal has decided, nothing happened. If we crash between the decision and the transaction,
 * the next start finds the record in the journal's tail. The transaction itself is all or nothing.
 */
import { CairnlogError } from "../base/error.js";
import { type JournalPosition, NO_HASH, type RowChange, type TileChange } from "../store/changeset.js";
import type { Store } from "../store/contract.js";
import { type DerivedTable, isPublic, PRIVATE_TABLES } from "../store/schema/schema.js";
import type { Decided, Journal, PlaceInJournal } from "./journal.js";
import { type JournalRecord, positionBehind } from "./record.js";
import type { RecordedChange } from "./rows.js";

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

export const localJournal: Journal = {
  propose: async () => NO_HASH,
  async *tail() {},
};
