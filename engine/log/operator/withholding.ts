/**
 * Payloads that the operator withholds: the entry that says so, and the row that follows from it. From the row
 * on, nobody is shown the payload (`read/withheld.ts`); the next opening of the log takes it from the disk (`history/erase.ts`).
 */
import { CairnlogError } from "../../base/error.js";
import { eventOf } from "../../verify/events/kinds.js";
import { PAYLOAD_WITHHELD, type Withholding, withholdingIn } from "../../verify/events/withheld.js";
import { define, type Transaction } from "../state/commands.js";
import type { DerivedWriter, LoggedEvent } from "../state/projection.js";

/** Writes the row of a payload that is withheld. Only the first entry about it counts, by its id and hash. */
export function applyWithholding(event: LoggedEvent, state: DerivedWriter): void {
  const withholding = withholdingIn(event);
  if (!withholding || withholding.entry_id >= event.id) return;
  const { entry_id, entry_hash, shown_hash } = withholding;
  if (state.get("withheld", entry_id)?.entry_hash !== entry_hash)
    state.put("withheld", entry_id, { withheld_by: event.id, entry_hash, ...(shown_hash && { shown_hash }) });
}

/** @throws CairnlogError `already-exists` for a payload that is withheld */
export const withholdPayload = define("log.withhold", (transaction: Transaction, withholding: Withholding): void => {
  const row = transaction.get("withheld", withholding.entry_id);
  if (row?.entry_hash === withholding.entry_hash) throw withheldBefore(withholding.entry_id, row.withheld_by);
  transaction.append(eventOf(PAYLOAD_WITHHELD, withholding));
});

export const withheldBefore = (entryId: number, by: number): CairnlogError =>
  new CairnlogError("already-exists", `The payload of entry ${entryId} is withheld by entry ${by}.`);
