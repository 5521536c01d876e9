/**
 * Payloads that the operator withholds: the entry that says so, and the row that follows from it. From the row
 * on, nobody is shown the payload (`read/withheld.ts`); the next opening of the log takes it from the disk (`history/erase.ts`).
 */
import { CairnlogError, inputError } from "../../base/error.js";
import { eventOf } from "../../verify/events/kinds.js";
import {
  isWithheld,
  isWithholdable,
  PAYLOAD_WITHHELD,
  payloadHash,
  type Withholding,
  withholdingIn,
  withoutName,
} from "../../verify/events/withheld.js";
import { BASIS, OPERATOR_REASON } from "../../verify/keys/limits.js";
import { type Entry, namesKey } from "../../verify/tree/entry.js";
import { define, type Transaction } from "../state/commands.js";
import type { Receipt, Writer } from "../state/executor.js";
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

const withheldBefore = (entryId: number, by: number): CairnlogError =>
  new CairnlogError("already-exists", `The payload of entry ${entryId} is withheld by entry ${by}.`);

/** The log of the payload, to be read and written. */
interface Withheld {
  readonly log: { entry(id: number): Entry | undefined };
  readonly writer: Pick<Writer, "execute">;
}

/** What the operator says when a payload is withheld. */
export type WithholdingReason = Pick<Withholding, "reason" | "basis" | "member">;

/**
 * Withholds the payload of an entry, or the name of the key in it. Resolves when that is on disk, and nobody is shown it any
 * more.
 * @throws CairnlogError `not-found`; `already-exists` if it is withheld; `invalid-input` for an entry from which a state
 *   follows, or by which the operator answers for something; and as `Log.execute` does
 */
export async function withhold(
  { log, writer }: Withheld,
  entryId: number,
  { reason, basis, member }: WithholdingReason,
): Promise<Receipt> {
  for (const [name, text, { max }] of [
    ["reason", reason, OPERATOR_REASON] as const,
    ["basis", basis ?? "", BASIS] as const,
  ])
    if ([...text].length > max) throw invalid(name, `At most ${max} characters.`);
  if (reason === "") throw invalid("reason", "It must say something.");
  const entry = log.entry(entryId);
  if (!entry) throw new CairnlogError("not-found", `The log has no entry ${entryId}.`);
  if (isWithheld(entry)) throw withheldBefore(entryId, entry.withheld_by);
  const { event_type, entry_hash, payload } = entry;
  const isMeant = member === undefined ? isWithholdable(event_type) : namesKey(event_type);
  if (!payload || !isMeant)
    throw inputError(
      `Entry ${entryId} is of type ${event_type}. ${member === undefined ? ONLY_STATEMENTS : "Only registrations and successions of keys have a pseudonym."}`,
    );
  const withholding = { entry_id: entryId, entry_hash, payload_hash: payloadHash(payload), reason, basis };
  const named = member && {
    member,
    fingerprint: String(payload.fingerprint),
    shown_hash: payloadHash(withoutName(payload)),
  };
  const { receipts } = await writer.execute(withholdPayload, { ...withholding, ...named });
  return receipts[0]!;
}

const ONLY_STATEMENTS =
  "Only attestations and encrypted claims can be withheld: what holds for keys, endorsements and requests follows from all others, and the operator answers for his own. Of a registration or succession, the pseudonym can be (member).";

const invalid = (member: string, message: string): CairnlogError =>
  inputError(`/${member}: ${message}`, { details: [{ path: `/${member}`, message }] });
