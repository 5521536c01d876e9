/** A journal in memory instead of on disk, with answers that may be lost. */
import type { Decided, Journal } from "#cairnlog/engine/journal/journal.js";
import { decodeRecord, encodeRecord, type JournalRecord, recordHash } from "#cairnlog/engine/journal/record.js";
import type { JournalPosition } from "#cairnlog/engine/store/schema/position.js";

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
