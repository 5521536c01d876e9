/**
 * What decides the fate of a commit. A record is *decided* when the journal says so, *applied* when it is in LMDB, and only
 * then is anybody told of it. `Ledger` carries records through the two; a log has one ledger, so one at a time is proposed.
 */
import type { JournalPosition } from "../store/position.js";
import type { JournalRecord } from "./record.js";

/** What a journal says of a record: its hash, or that nothing of it exists and never will. */
export type Decision = { readonly hash: Uint8Array } | "refused";

export interface Journal {
  /**
   * Decides a record.
   *
   * Durability: when this resolves to a hash, the record is in the journal whatever fails from now on, and no other record
   * will ever have its sequence. When it resolves to "refused", nothing of it is in the journal and nothing ever will be:
   * another writer has its sequence, or a later epoch.
   *
   * When it rejects, nobody knows: the record may be in the journal, may get there later, or never. Then `tail` must be read
   * before anything else is proposed. A record that is not in it may still come; then the next one, which has the same
   * sequence, is refused, and is found out by reading `tail` again.
   *
   * Concurrency: one record at a time. Retry: not here; the same bytes are never proposed twice by the log.
   */
  propose(record: JournalRecord): Promise<Decision>;

  /**
   * The records behind `position`, in order, as far as they are decided: none when it is up to date. Whoever applies them
   * checks them. May be called again at any time, also after it failed.
   */
  tail(position: JournalPosition): AsyncIterable<JournalRecord>;
}
