/**
 * A writer's state of a log, and the only way in which a record gets into the log. The log's own writer, a node that
 * catches up with a journal, an import, a restore and a mirror all apply records through this class.
 *
 * Memory is ahead of the disk while batches are on their way. `restore` reads it from disk again: at the start, and
 * after a failure.
 */
import { CairnlogError } from "../../base/error.js";
import { type Decided, type Draft, type Journal, Ledger } from "../../journal/ledger.js";
import type { RecordedChange } from "../../journal/rows.js";
import { isOutside, type JournalPosition } from "../../store/changeset.js";
import type { Store } from "../../store/contract.js";
import type { Postings } from "../../store/postings/postings.js";
import { TermTable } from "../../store/postings/termtable.js";
import type { Entry } from "../../verify/tree/entry.js";
import type { Operators } from "../operator/operators.js";
import type { Frontier } from "../read/frontier.js";
import type { Projection } from "../state/projection.js";
import { createHistoryReader, type HistoryReader, NO_PREDECESSOR, type Predecessor, predecessorOf } from "./entry.js";
import { Intake, type Made } from "./intake.js";
import type { LogMemory } from "./memory.js";

/** Number of entries whose postings may be in memory only. */
const MAX_BACKLOG = 4 * 4096;

interface ApplierParts {
  readonly store: Store;
  readonly journal: Journal;
  readonly projection: Projection;
  /** The memory of the writer's thread. */
  readonly memory: LogMemory;
}

export class Applier {
  readonly #parts: ApplierParts;
  readonly #ledger: Ledger;
  #reader: HistoryReader | undefined;
  /** The terms of the newest intake. To let a new table grow each time cost 1 µs an entry. */
  readonly #terms = new TermTable();
  /** The newest entry on disk; undefined until it is first needed. */
  #last: Predecessor | undefined;

  /** Call `restore` before any other method. */
  constructor(parts: ApplierParts) {
    const { store, journal } = parts;
    this.#parts = parts;
    this.#ledger = new Ledger(store, journal);
  }

  /** Files entries whose postings are missing on disk, so that the next `restore` is quick. */
  fileMissing(): Promise<void> {
    return this.#parts.memory.fileMissing();
  }

  /** Reads the state from disk again. */
  restore(): void {
    this.#last = undefined;
    this.#ledger.restore();
    this.#parts.memory.restore();
  }

  get operators(): Operators {
    return this.#parts.memory.operators;
  }

  set operators(operators: Operators) {
    this.#parts.memory.operators = operators;
  }

  get frontier(): Frontier {
    return this.#parts.memory.frontier;
  }

  get postings(): Postings {
    return this.#parts.memory.postings;
  }

  /**
   * Applies the records that the journal has decided but that are not on disk, each checked as one of another writer.
   * @param applied called when some of them are on disk, in order
   * @throws CairnlogError `storage-failed`; `corrupt-log` for a record that is not the next one of this log, or is wrong.
   *   Then those before it are on disk, and memory is what the disk says
   */
  async catchUp(applied: (records: readonly Decided[], made: Made) => void = () => {}): Promise<void> {
    const write = async (intake: Intake) => {
      if (!intake.records.length) return;
      const { records, made } = intake;
      await this.#apply(records, made);
      this.#last = intake.last;
      applied(records, made);
      await this.relieved();
    };
    let intake = await this.#intake();
    for await (const decided of this.#ledger.tail()) {
      if (intake.isFull || decided.replacesPrivateRows) {
        await write(intake);
        intake = await this.#intake();
      }
      try {
        intake.add(decided);
      } catch (error) {
        await write(intake);
        // The trees may be ahead of the disk.
        this.restore();
        throw refused(decided, error);
      }
    }
    await write(intake);
  }

  async #intake(): Promise<Intake> {
    this.#reader ??= await createHistoryReader(this.#parts.projection);
    this.#terms.clear();
    return new Intake({ ...this.#parts, reader: this.#reader, terms: this.#terms }, this.position, this.last);
  }

  /**
   * Brings a log that was made without the journal to its place in it: one that was restored, for example.
   * @throws CairnlogError `corrupt-log` for a log that is not the beginning of the journal's; `storage-failed`
   */
  async adopt(): Promise<void> {
    const { journal } = this.#parts;
    const { size, lastHash } = this.frontier;
    if (!isOutside(this.position) || !journal.placeOf || lastHash === null) return;
    await this.#ledger.adopt(await journal.placeOf(size, Buffer.from(lastHash, "hex")));
    this.restore();
  }

  /** The newest record on disk. */
  get position(): JournalPosition {
    return this.#ledger.position;
  }

  /**
   * Asks the journal to decide a record, and applies it. Resolves when it is on disk.
   * @throws CairnlogError `storage-failed`. The record may still be in the journal or on disk: call `restore` and
   *   `catchUp` before the next commit.
   */
  async commit(draft: Draft, made: Made): Promise<void> {
    await this.#apply([await this.#ledger.decide(draft)], made);
    this.#last = undefined;
  }

  /** Commits only rows that are not derived from entries. Otherwise like `commit`. */
  commitRows(rows: readonly RecordedChange[]): Promise<void> {
    const { size } = this.frontier;
    return this.commit({ firstIndex: size, batch: null, rows }, { rows: [], tiles: [], terms: new TermTable(), size });
  }

  async #apply(decided: readonly Decided[], made: Made): Promise<void> {
    await this.#ledger.apply(decided, made);
    // From here on the records' entries exist, even if this process ends now.
    this.frontier.written(made.tiles);
    if (decided.some(({ record }) => record.batch)) this.postings.add(made.size, made.terms);
  }

  /** The newest entry on disk; the next entry is checked against it. */
  get last(): Predecessor {
    if (!this.#last) {
      const batch = this.#parts.store.lastBatch();
      this.#last = batch ? predecessorOf(JSON.parse(batch.text(batch.count - 1)) as Entry) : NO_PREDECESSOR;
    }
    return this.#last;
  }

  /** Waits if too many postings are only in memory. */
  relieved(): Promise<void> {
    return this.postings.relieved(MAX_BACKLOG);
  }
}

/** Why a record of another writer is not applied. */
function refused({ record }: Decided, error: unknown): unknown {
  if (!(error instanceof CairnlogError)) return error;
  const code = error.code === "wrong-operator" ? error.code : "corrupt-log";
  return new CairnlogError(code, `Record ${record.sequence} of the journal is refused: ${error.message}`, {
    cause: error,
  });
}
