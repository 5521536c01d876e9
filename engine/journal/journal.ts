/**
 * The interface of a journal, which decides the fate of a commit. A record is *decided* when the journal says so, and
 * *applied* when it is in LMDB; only then is the commit visible to anybody. `Ledger` takes each record through both
 * steps. A log has one ledger, so only one record at a time is proposed.
 */
import type { JournalPosition } from "../store/changeset.js";
import type { JournalRecord } from "./record.js";
import type { RecordedChange } from "./rows.js";

/** A record that a journal has decided, and its hash; zeros from a journal that keeps no records as bytes. */
export interface Decided {
  readonly record: JournalRecord;
  readonly hash: Uint8Array;
  /** Present if its rows are all private rows there are: the others go when it is applied. */
  readonly replacesPrivateRows?: true;
}

export interface Journal {
  /** Present if it asks other machines, so that a record takes milliseconds, however small it is. */
  readonly isRemote?: true;

  /**
   * Decides a record.
   *
   * Durability: if this resolves to the record's hash, the record is in the journal, whatever fails afterwards, and no
   * other record will ever have its sequence. If it resolves to null, the record was refused: it is not in the journal
   * and never will be, because another record has its sequence, or another writer has the lead.
   *
   * If it rejects with `not-leader`, this node may no longer propose; the record may be in the journal.
   *
   * If it rejects otherwise, the outcome is unknown: the record may be in the journal, may get there later, or never. Then `tail`
   * must be read before another record is proposed. A record that is not in it may still arrive. In that case the next
   * record, which has the same sequence, is refused, and reading `tail` again shows why.
   *
   * Concurrency: one record at a time. Retry: not here; the log never proposes the same bytes twice.
   */
  propose(record: JournalRecord): Promise<Uint8Array | null>;

  /**
   * The decided records after `position`, in order; none if everything is applied. The caller checks them before it
   * applies them. May be called again at any time, also after it failed.
   */
  tail(position: JournalPosition): AsyncIterable<Decided>;

  /**
   * The place in the journal of a log that was made otherwise, such as one that was restored from a backup. Absent from a
   * journal that no log can be brought to.
   * @param size number of its entries, at least 1
   * @param digest of the newest one
   * @throws CairnlogError `corrupt-log` for a log that is not the beginning of the journal's
   */
  placeOf?(size: number, digest: Uint8Array): Promise<PlaceInJournal>;
}

/** A place in a journal, and the rows of a log that stands there. */
export interface PlaceInJournal {
  readonly position: JournalPosition;
  /** What the log is, and all of its private rows. */
  readonly rows: readonly RecordedChange[];
}
