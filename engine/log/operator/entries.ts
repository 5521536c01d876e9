/** Entries that the operator alone makes: of a withheld payload, of the beginning and the end of a log. */
import { CairnlogError, inputError, type Successor } from "../../base/error.js";
import { eventOf, payloadMisfit } from "../../verify/events/kinds.js";
import {
  eventIn,
  isWithheld,
  isWithholdable,
  membersIn,
  PAYLOAD_WITHHELD,
  payloadHash,
  type Withholding,
  withholdingIn,
  withoutName,
} from "../../verify/events/withheld.js";
import { BASIS, OPERATOR_REASON } from "../../verify/keys/contract.js";
import { parseVkey } from "../../verify/note/key.js";
import { type Entry, namesKey } from "../../verify/tree/entry.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { define, type Transaction } from "../state/commands.js";
import type { Receipt, Writer } from "../state/executor.js";
import { type DerivedWriter, type EventInput, type LoggedEvent, withheldKeys } from "../state/projection.js";

// Payloads that the operator withholds: the entry that says so, and the row that follows from it. From the row
// on, nobody is shown the payload (`read/withheld.ts`); the next opening of the log takes it from the disk (`history/erase.ts`).

/** Writes the row of a payload that is withheld. Only the first entry about it counts, by its id and hash. */
export function applyWithholding(event: LoggedEvent, state: DerivedWriter): void {
  const withholding = withholdingIn(event);
  if (!withholding || withholding.entry_id >= event.id) return;
  const { entry_id, entry_hash, shown_hash } = withholding;
  if (state.get("withheld", entry_id)?.entry_hash !== entry_hash)
    state.put("withheld", entry_id, { withheld_by: event.id, entry_hash, ...(shown_hash && { shown_hash }) });
}

/** A withholding, and what stays of the payload: keys of terms, by which the log knows it when it is sent once more. */
interface Remembering {
  readonly withholding: Withholding;
  readonly leafIndex: number;
  /** `withheldKeys` of its terms. */
  readonly keys: readonly string[];
}

/** @throws CairnlogError `already-exists` for a payload that is withheld */
const withholdPayload = define(
  "log.withhold",
  (transaction: Transaction, { withholding, leafIndex, keys }: Remembering): void => {
    const row = transaction.get("withheld", withholding.entry_id);
    if (row?.entry_hash === withholding.entry_hash) throw withheldBefore(withholding.entry_id, row.withheld_by);
    for (const key of keys) transaction.put("withheldTerms", key, { leaf_index: leafIndex });
    transaction.append(eventOf(PAYLOAD_WITHHELD, withholding));
  },
);

const withheldBefore = (entryId: number, by: number): CairnlogError =>
  new CairnlogError("already-exists", `The payload of entry ${entryId} is withheld by entry ${by}.`);

/** The log of the payload, to be read and written. */
interface Withheld {
  readonly log: {
    entry(id: number): Entry | undefined;
    leafIndexOf(id: number): number | undefined;
    termsOf(event: EventInput): string;
  };
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
  const { receipts } = await writer.execute(withholdPayload, {
    withholding: { ...withholding, ...named },
    leafIndex: log.leafIndexOf(entryId)!,
    keys: member ? [] : withheldKeys(log.termsOf({ event_type, payload })),
  });
  return receipts[0]!;
}

const ONLY_STATEMENTS =
  "Only attestations and encrypted claims can be withheld: what holds for keys, endorsements and requests follows from all others, and the operator answers for his own. Of a registration or succession, the pseudonym can be (member).";

const invalid = (member: string, message: string): CairnlogError =>
  inputError(`/${member}: ${message}`, { details: [{ path: `/${member}`, message }] });

// The end of a log: an entry by the operator behind which there is none. It is in the tree, so whoever has the head over
// it can prove that nothing may follow. Whatever appends or takes in entries asks here whether the newest one is the end.

export const LOG_FROZEN = "log_frozen";

/** How a log ended. */
export interface Frozen {
  readonly entry_id: number;
  /** Canonical form, or as an imported entry spells it. */
  readonly timestamp: string;
  readonly reason: string;
  readonly successor: Successor | null;
}

/** What the newest entry says of the end of its log; null if it is not the end. Its payload may be anything. */
export function frozenBy(newest: Omit<LoggedEvent, "leafIndex"> | undefined): Frozen | null {
  if (newest?.event_type !== LOG_FROZEN) return null;
  const { reason, successor } = newest.payload;
  const { url, vkey } = (successor ?? {}) as Partial<Successor>;
  return {
    entry_id: newest.id,
    timestamp: newest.timestamp,
    reason: typeof reason === "string" ? reason : "",
    successor: typeof url === "string" && typeof vkey === "string" ? { url, vkey } : null,
  };
}

/** Why nothing is written to a log that has ended. */
export function logFrozen({ entry_id, successor }: Frozen): CairnlogError {
  const next = successor ? `It goes on at ${successor.url}.` : "It names no log that goes on from it.";
  const message = `This log was frozen by entry ${entry_id}: nothing is written to it any more. ${next}`;
  return new CairnlogError("frozen", message, successor ? { successor } : {});
}

/** Why an entry cannot follow the one that froze the log, as a sentence. */
export const behindTheEnd = (id: number): string => `Entry ${id} froze the log: no entry may follow it.`;

/**
 * Checks an event that may begin or end a log.
 * @throws CairnlogError `invalid-input` for one that does not say what it must; `precondition-failed` for a beginning behind
 *   other entries
 */
export function checkShard(event: EventInput, leafIndex: number): void {
  const { event_type } = event;
  if (event_type !== LOG_FROZEN && event_type !== LOG_CONTINUES) return;
  const misfit = payloadMisfit(event);
  if (misfit !== undefined) throw inputError(misfit);
  if (event_type === LOG_CONTINUES && leafIndex > 0) throw new CairnlogError("precondition-failed", NOT_THE_FIRST);
}

/** What is said when a log is ended. */
export interface Ending {
  readonly reason: string;
  readonly successor: { readonly url: string; readonly vkey: string } | null;
}

/** @throws CairnlogError `frozen` for a log that has ended */
const endLog = define("log.freeze", (transaction: Transaction, end: Ending): void => {
  transaction.append(eventOf(LOG_FROZEN, { successor: end.successor, reason: end.reason }));
});

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

/**
 * Ends a log. Resolves when that is on disk; whatever comes in behind it is refused.
 * @throws CairnlogError `invalid-input`, `invalid-key` for a successor that no client could follow; `frozen` if the log
 *   has ended; and as `Log.execute` does
 */
export async function freeze(writer: Pick<Writer, "execute">, { reason, successor }: Ending): Promise<Receipt> {
  if (successor) {
    if (!isAddress(successor.url))
      throw inputError(
        "The address of the successor must be an http(s) URL without query, fragment and closing slash.",
        {
          details: [{ path: "/successor/url", message: "It must be an http(s) URL, without a slash at its end." }],
        },
      );
    parseVkey(successor.vkey);
  }
  const { receipts } = await writer.execute(endLog, { reason, successor });
  return receipts[0]!;
}

/** Whether a client can put `/api/v1/…` behind it. */
function isAddress(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== "https:" && url?.protocol !== "http:") return false;
  return url.username + url.password + url.search + url.hash === "" && url.href.replace(/\/$/, "") === text;
}
