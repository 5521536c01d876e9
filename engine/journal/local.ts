/**
 * The journal of a log on one machine: LMDB itself. The transaction that applies a record also decides it: it changes
 * the position only if the position is the one that the writer knows (`Store.commit`). So there is nothing to encode,
 * no second write to wait for, and nothing to catch up with: every decided record is applied.
 */
import { NO_HASH } from "../store/schema/position.js";
import type { Journal } from "./journal.js";

export const localJournal: Journal = {
  propose: async () => NO_HASH,
  async *tail() {},
};
