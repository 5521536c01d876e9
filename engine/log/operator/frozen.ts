/**
 * The end of a log: an entry by the operator behind which there is none. It is in the tree, so whoever has the head over
 * it can prove that nothing may follow. Whatever appends or takes in entries asks here whether the newest one is the end.
 */
import { CairnlogError, inputError, type Successor } from "../../base/error.js";
import { eventOf, payloadMisfit } from "../../verify/events/kinds.js";
import { eventIn, membersIn } from "../../verify/events/withheld.js";
import { parseVkey } from "../../verify/note/key.js";
import type { Entry } from "../../verify/tree/entry.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { define, type Transaction } from "../state/commands.js";
import type { Receipt, Writer } from "../state/executor.js";
import type { EventInput, LoggedEvent } from "../state/projection.js";

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
