/** A journal in memory instead of on disk, with answers that may be lost. */
import type { Decided, Journal } from "#cairnlog/engine/journal/ledger.js";
import { bodyOf, encodeRecord, type JournalRecord, recordHash, recordOf } from "#cairnlog/engine/journal/record.js";
import { readLines } from "#cairnlog/engine/journal/rows.js";
import { type JournalPosition, NO_HASH } from "#cairnlog/engine/store/changeset.js";

const NO_CONTENT = { sequence: 1, previous: NO_HASH, epoch: 0, firstIndex: 0, batch: null, rows: [] };
const LEAST = encodeRecord(NO_CONTENT).length;

/** Inverse of `encodeRecord`. @throws CairnlogError `corrupt-log` */
export function decodeRecord(bytes: Buffer): JournalRecord {
  const body = bytes.length < LEAST ? bytes : bodyOf(bytes);
  return recordOf(body, readLines(bytes.toString("utf8", body.length)), true).record;
}

/** The fate of a record and of the answer about it. */
export type JournalFate =
  | "works"
  | "refuses"
  | "loses the answer and keeps the record"
  | "loses the answer and keeps the record late"
  | "loses both";

export class FakeJournal implements Journal {
  /** The decided records, in order. */
  readonly records: Buffer[] = [];
  /** The fates of the next records, in order; later ones are decided. */
  plan: JournalFate[] = [];
  /** Number of injected failures. */
  injected = 0;
  #late: Buffer | undefined;

  async propose(record: JournalRecord): Promise<Uint8Array | null> {
    this.#arrive();
    const bytes = encodeRecord(record);
    const fate = this.plan.shift() ?? "works";
    if (fate !== "works") this.injected++;
    if (fate === "refuses" || record.sequence !== this.records.length + 1) return null;
    if (fate === "works" || fate === "loses the answer and keeps the record") this.records.push(bytes);
    if (fate === "loses the answer and keeps the record late") this.#late = bytes;
    if (fate !== "works") throw new Error(`injected: ${fate}`);
    return recordHash(bytes);
  }

  /** A record whose answer was lost is decided before the next one is proposed. */
  #arrive(): void {
    if (this.#late) this.records.push(this.#late);
    this.#late = undefined;
  }

  async *tail({ sequence }: JournalPosition): AsyncIterable<Decided> {
    for (let at = sequence; at < this.records.length; at++) {
      const bytes = this.records[at]!;
      yield { record: decodeRecord(bytes), hash: recordHash(bytes) };
    }
  }
}
