/**
 * The beginning of a log that goes on from a frozen one: its first entry names that log, the operator key there, and the
 * last head, as this operator has verified it.
 */

import { eventOf, payloadMisfit } from "../../verify/events/kinds.js";
import { eventIn, membersIn } from "../../verify/events/withheld.js";
import type { Entry } from "../../verify/tree/entry.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { define, type Transaction } from "../state/commands.js";

export const LOG_CONTINUES = "log_continues";

/** The log from which another one goes on. */
export interface PrecedingLog {
  readonly url: string;
  /** PEM of the key that signed its last head. */
  readonly operator_key: string;
  readonly tree_head: TreeHead;
}

/** From which log the log with this first entry goes on; null for a log that began by itself. */
export function continuedBy(first: Entry | undefined): (PrecedingLog & { readonly entry_id: number }) | null {
  if (first?.event_type !== LOG_CONTINUES || payloadMisfit(eventIn(first)) !== undefined) return null;
  return { entry_id: first.id, ...(membersIn(first).predecessor as PrecedingLog) };
}

/** Why an entry of this type is at no other place. */
export const NOT_THE_FIRST = "Only the first entry of a log says from which log it goes on.";

interface Continuation {
  readonly predecessor: PrecedingLog;
}

/** Begins a log. @throws CairnlogError `precondition-failed` for a log that has entries */
export const beginLog = define("log.continue", (transaction: Transaction, { predecessor }: Continuation): void => {
  const { url, operator_key, tree_head } = predecessor;
  transaction.append(eventOf(LOG_CONTINUES, { predecessor: { url, operator_key, tree_head } }));
});
