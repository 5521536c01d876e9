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

/** Writes a row that changes nothing. */
export const tryWriting = define("log.try-writing", (transaction: Transaction, _: null) => {
  transaction.put("meta", "log", transaction.get("meta", "log")!);
});

/** The moment at which it runs, which is never before the newest head. */
export const moment = define("log.moment", ({ timestamp }: Transaction, _: null) => timestamp);
