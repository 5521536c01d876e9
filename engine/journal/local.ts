/**
 * The journal of a log on one machine: LMDB itself. A record is decided by the very transaction that applies it, which
 * changes the position on the condition that it is as the writer knows it (`Store.commit`). So there is nothing to encode,
 * nothing to wait for, and nothing to catch up with: what was decided is applied.
 */
import { NO_HASH } from "../store/position.js";
import type { Journal } from "./journal.js";

export const localJournal: Journal = {
  propose: async () => NO_HASH,
  async *tail() {},
};
