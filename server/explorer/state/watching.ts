/**
 * Polls for the newest head while the page is visible. It accepts only a head that the pinned key has signed, or one to
 * which that key handed the log, and that is proven to extend the last one, of this visit or an earlier one.
 */
import Type from "typebox";
import { TreeSize } from "../../../engine/contract/common.js";
import type { OperatorKeys, TreeHead } from "../../../engine/verify/index.js";
import { ClientError, ClientState } from "../../client/index.js";
import { alarms, raiseFor } from "./alarm.js";
import { announce } from "./announcements.js";
import { Cell } from "./cell.js";
import { recall, remember, Visit } from "./memory.js";
import { generalAllowance } from "./service.js";
import { source } from "./source.js";

/** The state of the newest head. */
type Sight =
  | { readonly status: "looking" }
  /** Verified at `at`; `head` is null while the log is empty. */
  | { readonly status: "proven"; readonly head: TreeHead | null; readonly at: number };

/** Time between two checks, in milliseconds: short after a change, then longer and longer. */
const SOONEST = 2_000;
const LATEST = 15_000;
const LATEST_AFTER_FAILURE = 60_000;
const SLOWING = 1.5;
/** A check that finds a new head also fetches two proofs and a list. */
const REQUESTS_A_LOOK = 4;
/** The share of the limit that polling leaves. */
const RESERVE = 0.75;

export const sight = new Cell<Sight>({ status: "looking" });
/** The error of the last check; null if it succeeded. */
export const failure = new Cell<ClientError | null>(null);
/** The keys that sign the heads, the pinned one among them. */
export const operators = new Cell<OperatorKeys | null>(null);
/** The name of the log in its signed checkpoint; null until the checkpoint is verified. */
export const signedLogName = new Cell<string | null>(null);
/** The last check before this page was opened; null on a first visit. It does not change. */
export const lastVisit: Visit | null = knownVisit();

/** When the operator key was pinned, ISO 8601. */
export const pinnedAt = lastVisit?.pinned_at ?? new Date().toISOString();

/** Null also if what heads are compared with has not that of the visit: storage may have taken the one and not the other. */
function knownVisit(): Visit | null {
  const visit = recall("visit", Visit);
  const compared = recall("state", ClientState)?.head ?? recall("published", Type.Object({ tree_size: TreeSize }));
  return visit && (visit.head?.tree_size ?? 0) <= (compared?.tree_size ?? 0) ? visit : null;
}

let delay = SOONEST;
let timer: ReturnType<typeof setTimeout> | undefined;
let isLooking = false;

export function startWatching(): void {
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") void lookNow();
  });
  window.addEventListener("online", () => void lookNow());
  void lookNow();
}

/** The newest verified head, once the first check has ended; null if the log is empty, or the check failed. */
export function firstHead(): Promise<TreeHead | null> {
  return new Promise((resolve) => {
    const stops: (() => void)[] = [];
    const tell = () => {
      const seen = sight.value;
      if (seen.status === "looking" && !failure.value && !alarms.value.length) return;
      for (const stop of stops) stop();
      resolve(seen.status === "proven" ? seen.head : null);
    };
    for (const cell of [sight, failure, alarms] as readonly Cell<unknown>[]) stops.push(cell.watch(tell));
    tell();
  });
}

/** Fetches the newest head at once. */
export async function lookNow(): Promise<void> {
  if (isLooking) return;
  isLooking = true;
  clearTimeout(timer);
  try {
    await look();
    if (failure.value) announce("The service answers again.");
    failure.value = null;
  } catch (error) {
    await lookFailed(error);
  } finally {
    isLooking = false;
    schedule();
  }
}

async function look(): Promise<void> {
  const known = sight.value.status === "proven" ? (sight.value.head?.tree_size ?? 0) : -1;
  const head = await source().look();
  sight.value = { status: "proven", head, at: Date.now() };
  remember("visit", { head, seen_at: new Date().toISOString(), pinned_at: pinnedAt } satisfies Visit);
  delay = head && head.tree_size !== known ? SOONEST : Math.min(delay * SLOWING, LATEST);
}

async function lookFailed(error: unknown): Promise<void> {
  if (raiseFor(error)) {
    await source()
      .accused()
      .catch(() => {});
    delay = LATEST;
    failure.value = null;
    return;
  }
  const reason =
    error instanceof ClientError
      ? error
      : new ClientError("page-failed", `This page failed: ${error}`, { cause: error });
  if (!failure.value) announce(reason.detail);
  failure.value = reason;
  delay = reason.retryAfter ? reason.retryAfter * 1000 : Math.min(delay * 2, LATEST_AFTER_FAILURE);
}

/** A hidden page does not poll. Most of the request limit of this address is left for the reader's own clicks. */
function schedule(): void {
  clearTimeout(timer);
  if (document.visibilityState !== "visible") return;
  const allowance = generalAllowance();
  let wait = delay;
  if (allowance) {
    const untilReset = allowance.resetsAt - Date.now();
    const spare = allowance.remaining - allowance.limit * RESERVE;
    wait = Math.max(wait, spare > 0 ? (untilReset * REQUESTS_A_LOOK) / spare : untilReset);
  }
  timer = setTimeout(() => void lookNow(), Math.min(wait, LATEST_AFTER_FAILURE));
}
