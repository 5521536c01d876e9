/**
 * A writer's state of a log, and the only way in which a record gets into the log. The log's own writer, a node that
 * catches up with a journal, an import, a restore and a mirror all apply records through this class.
 *
 * Memory is ahead of the disk while batches are on their way. `restore` reads it from disk again: at the start, and
 * after a failure.
 */
import { CairnlogError } from "../../error.js";
import type { Decided, Journal } from "../../journal/journal.js";
import { type Consequences, type Draft, Ledger } from "../../journal/ledger.js";
import type { JournalRecord } from "../../journal/record.js";
import type { RecordedChange } from "../../journal/rows.js";
import { Layer } from "../../store/changeset.js";
import type { Store } from "../../store/contract.js";
import { checkFormat } from "../../store/lmdb/migrations.js";
import { isOutside, type JournalPosition } from "../../store/position.js";
import type { Postings } from "../../store/postings/postings.js";
import { TermTable } from "../../store/postings/termtable.js";
import type { LogMeta, SignedHeadRow } from "../../store/rows.js";
import type { Entry } from "../../verify/entry.js";
import {
  createHistoryReader,
  type HistoryReader,
  NO_PREDECESSOR,
  type Predecessor,
  predecessorOf,
} from "../history/entry.js";
import type { Operators } from "../operator/operators.js";
import type { Edge } from "../read/seams.js";
import { type Frontier, SIGNING_VERSION } from "../tree/frontier.js";
import { LayeredState } from "../write/layered.js";
import type { Projection } from "../write/projection.js";
import { derive } from "./derive.js";
import type { LogMemory } from "./memory.js";
import { checkHeads, entriesOf } from "./outside.js";

/** Number of entries whose postings may be in memory only. */
const MAX_BACKLOG = 4 * 4096;

export interface ApplierParts {
  readonly store: Store;
  readonly journal: Journal;
  readonly projection: Projection;
  /** The memory of the writer's thread. */
  readonly memory: LogMemory;
}

/** The data derived from a record. */
export interface Made extends Consequences {
  /** The terms of its entries. */
  readonly terms: TermTable;
  /** Number of entries in the log after the record. */
  readonly size: number;
}

export class Applier {
  readonly #parts: ApplierParts;
  readonly #ledger: Ledger;
  #reader: HistoryReader | undefined;
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
   * Applies the records that the journal has decided but that are not on disk.
   * @param applied called for each of them
   * @throws CairnlogError `storage-failed`, `corrupt-log`
   */
  async catchUp(applied: (decided: Decided, made: Made) => void = () => {}): Promise<void> {
    for await (const decided of this.#ledger.tail()) {
      applied(decided, await this.apply(decided));
      await this.relieved();
    }
  }

  /**
   * Brings a log that was made without the journal to its place in it: one that was restored, for example.
   * @throws CairnlogError `corrupt-log` for a log that is not the beginning of the journal's; `storage-failed`
   */
  async adopt(): Promise<void> {
    const { journal } = this.#parts;
    const { size, lastHash } = this.frontier;
    if (!isOutside(this.position) || !journal.placeOf || lastHash === null) return;
    await this.#ledger.adopt(await journal.placeOf(size, Buffer.from(lastHash, "hex")), size);
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
    await this.apply(await this.#ledger.decide(draft), made);
  }

  /** Commits only rows that are not derived from entries. Otherwise like `commit`. */
  commitRows(rows: readonly RecordedChange[]): Promise<void> {
    const { size } = this.frontier;
    return this.commit({ firstIndex: size, batch: null, rows }, { rows: [], tiles: [], terms: new TermTable(), size });
  }

  /**
   * Applies a decided record. Resolves when it is on disk.
   * @param made the data derived from the record, if this process has computed it. Without it, the record comes from
   *   outside: it is checked, and the derived data is computed here
   * @returns the data derived from it
   * @throws CairnlogError `storage-failed` as `commit` does; `corrupt-log` for a record that is not the next one of
   *   this log
   */
  async apply(decided: Decided, made?: Made): Promise<Made> {
    const consequences = made ?? (await this.#derive(decided.record));
    await this.#ledger.apply(decided, consequences);
    // From here on the record's entries exist, even if this process ends now.
    this.#last = undefined;
    this.frontier.written(consequences.tiles);
    if (decided.record.batch) this.postings.add(consequences.size, consequences.terms);
    return consequences;
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

  /** Checks a record from another writer, adds its entries to the trees, and computes the data derived from it. */
  async #derive(record: JournalRecord): Promise<Made> {
    this.#reader ??= await createHistoryReader(this.#parts.projection);
    try {
      return this.#deriveChecked(record, this.#reader);
    } catch (error) {
      // The trees may be ahead of the disk.
      this.restore();
      if (!(error instanceof CairnlogError)) throw error;
      const code = error.code === "wrong-operator" ? error.code : "corrupt-log";
      throw new CairnlogError(code, `Record ${record.sequence} of the journal is refused: ${error.message}`, {
        cause: error,
      });
    }
  }

  #deriveChecked(record: JournalRecord, reader: HistoryReader): Made {
    const { store, projection, memory } = this.#parts;
    const { frontier, postings } = this;
    if (record.firstIndex !== frontier.size)
      throw new CairnlogError(
        "corrupt-log",
        `it follows ${record.firstIndex} entries, and the log has ${frontier.size}.`,
      );
    for (const { table, row } of record.rows)
      if (table === "signedHeads") frontier.notBefore((row as SignedHeadRow).timestamp);
    const layer = new Layer();
    if (!record.batch) {
      checkOwner(record, memory.operators);
      return { rows: [], tiles: [], terms: layer.terms, size: frontier.size };
    }
    const checked = entriesOf(record.firstIndex, record.batch, this.last, reader);
    const { batch, entries } = checked;
    const { roots, tiles } = frontier.extend(batch.digests, batch.headInfo?.treeVersion);
    const tree = frontier.trees[SIGNING_VERSION];
    // Like the trees, ahead of the disk from here on.
    memory.operators = entries.reduce((operators, { event }) => operators.after(event, tree), memory.operators);
    checkOwner(record, memory.operators);
    const headTime = checkHeads(checked, roots, frontier.lastTimestamp, memory.operators);
    const state = new LayeredState(store, postings, [layer]);
    let before: Edge = this.last;
    for (const entry of entries) {
      derive(entry, before, projection, state, layer.terms);
      before = entry;
    }
    const last = entries.at(-1)!;
    frontier.lastHash = last.entryHash;
    frontier.lastId = last.id;
    frontier.lastTimestamp = headTime;
    return { rows: layer.split().derived, tiles, terms: layer.terms, size: frontier.size };
  }
}

/**
 * Checks the owner of the log, which is in its first record and in that of every rotation. @throws CairnlogError if the
 * record belongs to another operator, or comes from a newer version
 */
function checkOwner({ rows }: JournalRecord, { current }: Operators): void {
  for (const { table, row } of rows) {
    if (table !== "meta") continue;
    const meta = row as LogMeta;
    checkFormat(meta);
    if (meta.key_id !== current.fingerprint)
      throw new CairnlogError(
        "wrong-operator",
        `it is of the log of operator key ${meta.key_id}, not of ${current.fingerprint}.`,
      );
  }
}
