/** Commands that a test defines for itself, without a registered name. */
import type { Log } from "#cairnlog/engine/log/log.js";
import type { Transaction } from "#cairnlog/engine/log/write/commands.js";
import type { Committed } from "#cairnlog/engine/log/write/sequencer.js";

/** Runs `work` as a command of `log`. */
export const runIn = <T>(log: Log, work: (transaction: Transaction) => T): Promise<Committed<T>> =>
  log.execute({ name: "inline", run: work }, null);
