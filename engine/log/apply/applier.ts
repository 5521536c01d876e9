/**
 * What a writer of a log knows of it, and the one way in which a record gets into it. The log's own writer, a node that
 * catches up with a journal, an import, a restore and a mirror all apply through here.
 *
 * Memory runs ahead of the disk while batches are on their way, and `restore` makes it what the disk says: at the start, and
 * after anything failed.
 */
import type { ServerKey } from "../../crypto/keys/spki.js";
import { CairnlogError } from "../../error.js";
import type { Decided, Journal } from "../../journal/journal.js";
import { type Consequences, type Draft, Ledger } from "../../journal/ledger.js";
import type { JournalRecord } from "../../journal/record.js";
import type { RecordedChange } from "../../journal/rows.js";
import { Layer } from "../../store/changeset.js";
import type { Store } from "../../store/contract.js";
import { checkFormat } from "../../store/lmdb/migrations.js";
import { Postings } from "../../store/postings/postings.js";
import { TermTable } from "../../store/postings/termtable.js";
import type { LogMeta, SignedHeadRow } from "../../store/schema.js";
import type { Entry } from "../../verify/entry.js";
import {
  createHistoryReader,
  type HistoryReader,
  NO_PREDECESSOR,
  type Predecessor,
  predecessorOf,
} from "../history/entry.js";
import { EntryReader } from "../read/reader.js";
import type { Edge } from "../read/seams.js";
import { Frontier } from "../tree/frontier.js";
import { LayeredState } from "../write/layered.js";
import type { Projection } from "../write/projection.js";
import { catchUp, derive } from "./derive.js";
import { checkHeads, entriesOf } from "./outside.js";

/** Entries whose postings may wait for the disk. */
const MAX_BACKLOG = 4 * 4096;

export interface ApplierParts {
  readonly store: Store;
  readonly journal: Journal;
  readonly projection: Projection;
  /** Signs the heads. */
  readonly operator: ServerKey;
  /** Another process writes the log. */
  readonly isReader?: boolean;
}

/** What follows from a record. */
export interface Made extends Consequences {
  /** What its entries are found by. */
  readonly terms: TermTable;
  /** Entries in the log when it is applied. */
  readonly size: number;
}

export class Applier {
  readonly #parts: ApplierParts;
  readonly #ledger: Ledger;
  readonly #entries: EntryReader;
  readonly frontier: Frontier;
  readonly postings: Postings;
  #reader: HistoryReader | undefined;
  /** The newest entry on disk; undefined until somebody asks. */
  #last: Predecessor | undefined;

  /** To be restored before anything else. */
  constructor(parts: ApplierParts) {
    const { store, journal } = parts;
    this.#parts = parts;
    this.#ledger = new Ledger(store, journal);
    this.#entries = new EntryReader(store);
    this.frontier = new Frontier(store);
    this.postings = new Postings(store.postings, parts.isReader);
  }

  /** Memory becomes what the disk says. */
  restore(): void {
    this.#last = undefined;
    this.#ledger.restore();
    this.frontier.restore();
    catchUp(this.postings, this.#entries, this.frontier.size, this.#parts.projection);
  }

  /** Applies what the journal has decided beyond the disk. @throws CairnlogError `storage-failed`, `corrupt-log` */
  async catchUp(): Promise<void> {
    for await (const decided of this.#ledger.tail()) {
      await this.apply(decided);
      await this.relieved();
    }
  }

  /**
   * Has the journal decide a record, and applies it. Resolves when it is on disk.
   * @throws CairnlogError `storage-failed`. The record may be in the journal or on disk all the same: `restore` and
   *   `catchUp` before going on.
   */
  async commit(draft: Draft, made: Made): Promise<void> {
    await this.apply(await this.#ledger.decide(draft), made);
  }

  /** The same for rows that follow from no entry, and nothing else. */
  commitRows(rows: readonly RecordedChange[]): Promise<void> {
    const { size } = this.frontier;
    return this.commit({ firstIndex: size, batch: null, rows }, { rows: [], tiles: [], terms: new TermTable(), size });
  }

  /**
   * Applies a decided record. Resolves when it is on disk.
   * @param made what follows from the record, where this process has made it; without it, the record comes from outside: it
   *   is checked, and all that follows is made here
   * @throws CairnlogError `storage-failed` as `commit` does; `corrupt-log` for a record that is not the next one of this log
   */
  async apply(decided: Decided, made?: Made): Promise<void> {
    const consequences = made ?? (await this.#derive(decided.record));
    await this.#ledger.apply(decided, consequences);
    // From here the record's entries exist, whatever happens to this process.
    this.#last = undefined;
    this.frontier.written(consequences.tiles);
    if (decided.record.batch) this.postings.add(consequences.size, consequences.terms);
  }

  /** The newest entry on disk, as the next one is checked against it. */
  get last(): Predecessor {
    if (!this.#last) {
      const batch = this.#parts.store.lastBatch();
      this.#last = batch ? predecessorOf(JSON.parse(batch.text(batch.count - 1)) as Entry) : NO_PREDECESSOR;
    }
    return this.#last;
  }

  /** Waits, if too much of what entries are found by is in memory alone. */
  relieved(): Promise<void> {
    return this.postings.relieved(MAX_BACKLOG);
  }

  /** Checks a record that somebody else made, takes its entries' places in the trees, and makes what follows from it. */
  async #derive(record: JournalRecord): Promise<Made> {
    this.#reader ??= await createHistoryReader(this.#parts.projection);
    try {
      return this.#deriveChecked(record, this.#reader);
    } catch (error) {
      // The trees may run ahead of the disk.
      this.restore();
      if (!(error instanceof CairnlogError)) throw error;
      const code = error.code === "wrong-operator" ? error.code : "corrupt-log";
      throw new CairnlogError(code, `Record ${record.sequence} of the journal is refused: ${error.message}`, {
        cause: error,
      });
    }
  }

  #deriveChecked(record: JournalRecord, reader: HistoryReader): Made {
    const { store, projection, operator } = this.#parts;
    const { frontier, postings } = this;
    if (record.firstIndex !== frontier.size)
      throw new CairnlogError(
        "corrupt-log",
        `it follows ${record.firstIndex} entries, and the log has ${frontier.size}.`,
      );
    for (const { table, row } of record.rows) {
      if (table === "meta") checkOwner(row as LogMeta, operator);
      if (table === "signedHeads") frontier.notBefore((row as SignedHeadRow).timestamp);
    }
    const layer = new Layer();
    if (!record.batch) return { rows: [], tiles: [], terms: layer.terms, size: frontier.size };
    const checked = entriesOf(record.firstIndex, record.batch, this.last, reader);
    const { batch, entries } = checked;
    const { roots, tiles } = frontier.extend(batch.digests, batch.headInfo?.treeVersion);
    const headTime = checkHeads(checked, roots, frontier.lastTimestamp, operator);
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

/** What a log is stands in its first record. @throws CairnlogError when it is of another operator, or of a newer version */
function checkOwner(meta: LogMeta, operator: ServerKey): void {
  checkFormat(meta);
  if (meta.key_id !== operator.fingerprint)
    throw new CairnlogError(
      "wrong-operator",
      `it is of the log of operator key ${meta.key_id}, not of ${operator.fingerprint}.`,
    );
}
