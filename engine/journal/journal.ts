/**
 * What decides the fate of a commit. A record is *decided* when the journal says so, *applied* when it is in LMDB, and only
 * then is anybody told of it. `Ledger` carries records through the two; a log has one ledger, so one at a time is proposed.
 */
import type { JournalPosition } from "../store/position.js";
import type { JournalRecord } from "./record.js";

/** A record that a journal has decided, and its hash; zeros from a journal that keeps no records as bytes. */
export interface Decided {
  readonly record: JournalRecord;
  readonly hash: Uint8Array;
}

export interface Journal {
  /**
   * Decides a record.
   *
   * Durability: when this resolves to the record's hash, it is in the journal whatever fails from now on, and no other
   * record will ever have its sequence. When it resolves to null, the record was refused: nothing of it is in the journal
   * and nothing ever will be, since another record has its sequence, or another writer has the lead.
   *
   * When it rejects, nobody knows: the record may be in the journal, may get there later, or never. Then `tail` must be read
   * before anything else is proposed. A record that is not in it may still come; then the next one, which has the same
   * sequence, is refused, and is found out by reading `tail` again.
   *
   * Concurrency: one record at a time. Retry: not here; the same bytes are never proposed twice by the log.
   */
  propose(record: JournalRecord): Promise<Uint8Array | null>;

  /**
   * The records behind `position`, in order, as far as they are decided: none when it is up to date. Whoever applies them
   * checks them. May be called again at any time, also after it failed.
   */
  tail(position: JournalPosition): AsyncIterable<Decided>;
}
