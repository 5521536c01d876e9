/** Commands that a test defines for itself, without a registered name. */

import type { Transaction } from "#cairnlog/engine/log/state/commands.js";
import type { Committed } from "#cairnlog/engine/log/state/executor.js";
import type { StateWriter } from "#cairnlog/engine/log/state/projection.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import type { DerivedTable, PrivateTable } from "#cairnlog/engine/store/schema/schema.js";

/** A transaction that can write every table of state, so that a test can add rows that no entry makes. */
export type PlantingTransaction = Transaction & StateWriter<DerivedTable | PrivateTable>;

/** Runs `work` as a command of `log`. */
export const runIn = <T>(log: LogWriter, work: (transaction: PlantingTransaction) => T): Promise<Committed<T>> =>
  log.execute({ name: "inline", run: (transaction) => work(transaction as PlantingTransaction) }, null);
