/**
 * The writing end of a log's store: gives each commit its number, has the journal decide it, and applies it. Nothing gets
 * into LMDB but through here, apart from repairs of what follows from records (`check/repair.ts`).
 *
 * If we crash before the journal has decided, nothing happened. If we crash between the decision and the transaction, the
 * next start finds the record in the journal's tail. The transaction itself is all or nothing.
 */
import { CairnlogError } from "../error.js";
import type { RowChange, TileChange } from "../store/changeset.js";
import type { Store } from "../store/contract.js";
import type { JournalPosition } from "../store/position.js";
import type { DerivedTable } from "../store/schema.js";
import type { Decided, Journal } from "./journal.js";
import { checkNext, type JournalRecord } from "./record.js";
import type { RecordedChange } from "./rows.js";

/** What a commit is made of: all of a record but its place in the journal. */
export type Draft = Pick<JournalRecord, "firstIndex" | "batch" | "rows">;

/** What follows from a record, and is written with it. */
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

  /** The newest record that is applied. */
  get position(): JournalPosition {
    return this.#position;
  }

  /** Memory becomes what the disk says. */
  restore(): void {
    this.#position = this.#store.position();
  }

  /**
   * Has the journal decide the next record.
   * @throws CairnlogError `storage-failed`. Unless it was refused, it may be decided all the same: read `tail` before the
   *   next one.
   */
  async decide(draft: Draft): Promise<Decided> {
    const { sequence, hash: previous, epoch } = this.#position;
    const record = { ...draft, sequence: sequence + 1, previous, epoch };
    let hash: Uint8Array | null;
    try {
      hash = await this.#journal.propose(record);
    } catch (cause) {
      throw new CairnlogError("storage-failed", "The journal did not answer.", { cause });
    }
    if (!hash) throw new CairnlogError("storage-failed", "The journal has taken the record of another writer.");
    return { record, hash };
  }

  /**
   * Writes a decided record, the next one, and what follows from it. Resolves when all of it is on disk.
   * @throws CairnlogError `storage-failed`: it may be on disk all the same, so `restore` before going on; `corrupt-log`
   *   when it is not the next one
   */
  async apply({ record, hash }: Decided, { rows, tiles }: Consequences): Promise<void> {
    checkNext(this.#position, record);
    const { sequence, epoch, firstIndex, batch } = record;
    const position = { sequence, epoch, hash };
    const changes = { after: sequence - 1, position, firstIndex, batch, rows: [...record.rows, ...rows], tiles };
    try {
      await this.#store.commit(changes);
    } catch (cause) {
      throw new CairnlogError("storage-failed", "The data directory could not be written.", { cause });
    }
    this.#position = position;
  }

  /** The records that are decided and not applied. */
  tail(): AsyncIterable<Decided> {
    return this.#journal.tail(this.#position);
  }
}

/** Commits rows that follow from no entry to a log of `size` entries, and writes nothing else. @throws as the ledger does */
export async function commitRows(ledger: Ledger, size: number, rows: readonly RecordedChange[]): Promise<void> {
  await ledger.apply(await ledger.decide({ firstIndex: size, batch: null, rows }), NOTHING);
}

const NOTHING: Consequences = { rows: [], tiles: [] };
