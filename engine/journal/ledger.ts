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
import type { Journal } from "./journal.js";
import type { JournalRecord } from "./record.js";

/** What a commit is made of: all of a record but its place in the journal. */
export interface Draft extends Pick<JournalRecord, "firstIndex" | "rows"> {
  readonly batch: Buffer | null;
}

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
   * Proposes a record and, when it is decided, applies it. Resolves when it is on disk.
   * @throws CairnlogError `storage-failed`. It may be decided or even applied all the same: read `tail` and `restore`
   *   before the next one.
   */
  async commit(draft: Draft, consequences: Consequences): Promise<void> {
    const { sequence, hash: previous, epoch } = this.#position;
    const record = { ...draft, sequence: sequence + 1, previous, epoch };
    let decision: Awaited<ReturnType<Journal["propose"]>>;
    try {
      decision = await this.#journal.propose(record);
    } catch (cause) {
      throw new CairnlogError("storage-failed", "The journal did not answer.", { cause });
    }
    if (decision === "refused")
      throw new CairnlogError("storage-failed", "The journal has taken another writer's record.");
    await this.#apply(record, decision.hash, consequences);
  }

  async #apply(record: Draft & JournalRecord, hash: Uint8Array, { rows, tiles }: Consequences): Promise<void> {
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
}
