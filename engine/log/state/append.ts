/** The log's own commands. */
import { define, type PlainObject, type Transaction } from "./commands.js";

export interface PlainEvent {
  readonly event_type: string;
  readonly payload: PlainObject;
}

/** Appends events that become neighbours in one batch. */
export const append = define(
  "log.append",
  (transaction: Transaction, { events }: { readonly events: readonly PlainEvent[] }) => {
    for (const event of events) transaction.append(event);
  },
);

/**
 * Takes the moment at which it runs for a head that is signed on demand: no head before is later, and none is earlier that
 * is made afterwards. It is written down, so that this holds also when the clock has stepped back and the log was closed
 * and opened again.
 */
export const takeHeadTime = define("log.take-head-time", (transaction: Transaction, _: null) => {
  const { timestamp } = transaction;
  transaction.put("signedHeads", "log", { timestamp });
  return timestamp;
});
