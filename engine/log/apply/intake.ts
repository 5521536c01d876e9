/**
 * Takes in records that another writer made. It checks each record and derives its data in memory. Then all records are
 * written in one transaction, because a transaction wakes threads and flushes, whatever it holds. It writes nothing
 * itself: `Applier` does.
 *
 * If we crash here, none of these records is on disk, and they are read from the journal again.
 */
import { CairnlogError } from "../../base/error.js";
import { verifySync } from "../../crypto/keys/signatures.js";
import type { ServerKey } from "../../crypto/keys/spki.js";
import { type Consequences, type Decided, positionBehind } from "../../journal/ledger.js";
import type { JournalRecord } from "../../journal/record.js";
import { type JournalPosition, Layer, type TileChange } from "../../store/changeset.js";
import type { Store } from "../../store/contract.js";
import { checkFormat } from "../../store/migrations.js";
import type { TermTable } from "../../store/postings/termtable.js";
import { Batch } from "../../store/schema/batch.js";
import type { LogMeta, SignedHeadRow } from "../../store/schema/rows.js";
import { HASH } from "../../store/schema/schema.js";
import { treeHeadMessage } from "../../verify/tree/treehead.js";
import { frozenBy } from "../operator/entries.js";
import type { Operators } from "../operator/operators.js";
import { SIGNING_VERSION } from "../read/frontier.js";
import { headOf } from "../read/reader.js";
import type { Edge } from "../read/seams.js";
import type { Projection } from "../state/projection.js";
import { CommittedRows, LayeredState } from "../state/rows.js";
import { deriveRows } from "./derive.js";
import type { CheckedEntry, HistoryReader, Predecessor } from "./entry.js";
import { checkHead } from "./head.js";
import type { LogMemory } from "./memory.js";

/** An intake ends behind the record with which it has so many entries, or so many bytes of them. */
const MAX_ENTRIES = 1024;
const MAX_BYTES = 4 * 2 ** 20;

/** The data derived from records. */
export interface Made extends Consequences {
  /** The terms of their entries. */
  readonly terms: TermTable;
  /** Number of entries in the log after the records. */
  readonly size: number;
}

interface IntakeParts {
  readonly store: Store;
  readonly projection: Projection;
  /** The memory of the writer's thread, which every record changes. */
  readonly memory: LogMemory;
  readonly reader: HistoryReader;
  /** An empty table for the terms of the entries, whose memory is reused. */
  readonly terms: TermTable;
}

export class Intake {
  readonly #parts: IntakeParts;
  readonly #records: Decided[] = [];
  readonly #layer: Layer;
  readonly #state: LayeredState;
  readonly #tiles = new Map<string, TileChange>();
  #position: JournalPosition;
  #last: Predecessor;
  #size: number;
  #entries = 0;
  #bytes = 0;

  /** @param position of the newest record on disk, and the newest entry */
  constructor(parts: IntakeParts, position: JournalPosition, last: Predecessor) {
    const { store, memory, terms } = parts;
    this.#position = position;
    this.#layer = new Layer(terms);
    this.#parts = parts;
    this.#state = new LayeredState(new CommittedRows(store), memory.postings, [this.#layer]);
    this.#last = last;
    this.#size = memory.frontier.size;
  }

  /** In order. */
  get records(): readonly Decided[] {
    return this.#records;
  }

  /** The newest entry after the records. */
  get last(): Predecessor {
    return this.#last;
  }

  get isFull(): boolean {
    return this.#entries >= MAX_ENTRIES || this.#bytes >= MAX_BYTES;
  }

  /**
   * Adds the next record. The trees and the keys in memory are ahead of the disk from here on.
   * @throws CairnlogError for a record that is wrong. The intake is as it was; the memory is not, and must be read again
   *   when the intake is written
   */
  add(decided: Decided): void {
    const position = positionBehind(this.#position, decided);
    this.#layer.begin();
    try {
      this.#derive(decided.record);
    } catch (error) {
      this.#layer.undo();
      throw error;
    }
    this.#layer.keep();
    this.#records.push(decided);
    this.#position = position;
  }

  /** What follows from the records. */
  get made(): Made {
    return {
      rows: this.#layer.split().derived,
      tiles: [...this.#tiles.values()],
      terms: this.#layer.terms,
      size: this.#size,
    };
  }

  #derive(record: JournalRecord): void {
    const { projection, memory, reader } = this.#parts;
    const { frontier } = memory;
    const { firstIndex, batch: packed, rows } = record;
    if (firstIndex !== frontier.size)
      throw new CairnlogError("corrupt-log", `it follows ${firstIndex} entries, and the log has ${frontier.size}.`);
    for (const { table, row } of rows)
      if (table === "signedHeads") frontier.notBefore((row as SignedHeadRow).timestamp);
    if (!packed) {
      checkOwner(record, memory.operators);
      this.#record(record);
      return;
    }
    const checked = entriesOf(firstIndex, packed, this.#last, reader);
    const { batch, entries } = checked;
    const { roots, tiles } = frontier.extend(batch.digests, batch.headInfo?.treeVersion);
    const tree = frontier.trees[SIGNING_VERSION];
    memory.operators = entries.reduce((operators, { event }) => operators.after(event, tree), memory.operators);
    checkOwner(record, memory.operators);
    const headTime = checkHeads(checked, roots, frontier.lastTimestamp, memory.operators);
    let before: Edge = this.#last;
    for (const entry of entries) {
      deriveRows(entry, before, projection, this.#state, this.#layer.terms);
      before = entry;
    }
    const last = entries.at(-1)!;
    frontier.lastHash = last.entryHash;
    frontier.lastId = last.id;
    frontier.frozen = frozenBy(last.event);
    frontier.lastTimestamp = headTime;
    this.#record(record);
    // A tile that grows in several records is written once, as it is after the last of them.
    for (const tile of tiles) this.#tiles.set(`${tile.treeVersion} ${tile.level} ${tile.index}`, tile);
    this.#last = last;
    this.#size = frontier.size;
    this.#entries += entries.length;
    this.#bytes += packed.length;
  }

  /** Later records see the rows of this one, as they would if it were on disk. */
  #record({ rows }: JournalRecord): void {
    for (const { table, key, row } of rows) this.#layer.put(table, key as never, row as never);
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

// Checks batches that another writer made and a journal has decided. The journal guarantees that a batch was appended,
// but not that it is right. So these are checked: content, links, order and digests of every entry, the root of every
// head, and one signature of each batch. The serialisation is checked too, because entries are served as they are
// stored.

/**
 * The entries of a packed batch, each checked against the previous one.
 * @throws CairnlogError for the first entry that is wrong
 */
function entriesOf(
  firstIndex: number,
  packed: Buffer,
  previous: Predecessor,
  reader: HistoryReader,
): { readonly batch: Batch; readonly entries: readonly CheckedEntry[] } {
  const batch = new Batch(firstIndex, packed);
  if (!batch.count) throw new CairnlogError("corrupt-log", "its batch is empty.");
  const entries: CheckedEntry[] = [];
  let areSpelledSo = true;
  for (let i = 0; i < batch.count; i++) {
    const bytes = batch.entry(i);
    const entry = reader.read(bytes, entries[i - 1] ?? previous, firstIndex + i, null);
    areSpelledSo &&= entry.json.equals(bytes);
    entries.push(entry);
  }
  const digests = Buffer.from(entries.map(({ entryHash }) => entryHash).join(""), "hex");
  // Nothing else in a batch with heads has a second form, and one without heads is refused below.
  if (!areSpelledSo || !digests.equals(batch.digests))
    throw new CairnlogError("corrupt-log", "its batch is not in the form in which batches are written.");
  return { batch, entries };
}

/**
 * Checks every head of a batch, and one signature.
 * @param roots of each size that the batch makes, 32 bytes each
 * @param notBefore timestamp of the previous head, microseconds
 * @returns timestamp of the newest head, microseconds
 * @throws CairnlogError for the first head that is wrong
 */
function checkHeads(
  { batch, entries }: { readonly batch: Batch; readonly entries: readonly CheckedEntry[] },
  roots: Uint8Array,
  notBefore: number,
  operators: Operators,
): number {
  const expected = Buffer.from(roots.buffer, roots.byteOffset, roots.length);
  let time = notBefore;
  let known: ServerKey | null = null;
  for (const [i, { micros }] of entries.entries()) {
    const size = batch.firstIndex + i + 1;
    const key = operators.keyAt(size);
    const packed = batch.head(i);
    const [from, to] = [HASH * i, HASH * (i + 1)];
    // The heads of a batch mostly have one time, so most of what there is to check is the same as of the one before.
    const isLike = packed?.timestamp === time && key === known && micros <= time;
    if (isLike && expected.compare(packed.root, 0, HASH, from, to) === 0) continue;
    const head = headOf(batch, i, size);
    if (!head) throw new CairnlogError("corrupt-log", "its entries have no tree heads.");
    checkHead(head, { size, root: expected.toString("hex", from, to), notBefore: Math.max(time, micros) }, key);
    time = packed!.timestamp;
    known = key;
  }
  const size = batch.firstIndex + batch.count;
  const newest = headOf(batch, batch.count - 1, size)!;
  const message = treeHeadMessage(newest.root_hash, size, newest.timestamp);
  if (!verifySync(operators.keyAt(size), message, Buffer.from(newest.signature, "base64")))
    throw new CairnlogError("invalid-signature", "the signature of its newest tree head does not verify.");
  return time;
}
