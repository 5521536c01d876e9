/**
 * The watch: asks for the newest head while somebody looks, and takes none that is not signed by the pinned key and
 * shown to be an extension of the last one seen, in this visit or an earlier one.
 */
import { type PublicKey, type TreeHead, verifyCheckpoint } from "../../../engine/verify/index.js";
import { ClientError } from "../../client/index.js";
import { OperatorPublicKey, TreeHead as TreeHeadSchema } from "../../wire/log/log.js";
import { raise, raiseFor } from "./alarm.js";
import { announce } from "./announcements.js";
import { Cell } from "./cell.js";
import { recall, remember, Visit } from "./memory.js";
import { client, generalAllowance, http } from "./service.js";

/** What is known of the newest head. */
export type Sight =
  | { readonly status: "looking" }
  /** Checked at `at`; `head` is null while the log is empty. */
  | { readonly status: "proven"; readonly head: TreeHead | null; readonly at: number };

/** Between looks, in milliseconds: soon after a change, then less and less often. */
const SOONEST = 2_000;
const LATEST = 15_000;
const LATEST_AFTER_FAILURE = 60_000;
const SLOWING = 1.5;
/** A look that finds a new head also takes two proofs and a list. */
const REQUESTS_A_LOOK = 4;

export const sight = new Cell<Sight>({ status: "looking" });
/** Why the last look failed; null when it did not. */
export const failure = new Cell<ClientError | null>(null);
export const operator = new Cell<PublicKey | null>(null);
/** What the log calls itself in its signed checkpoint; null until that is proven. */
export const logName = new Cell<string | null>(null);
/** The last look before this page was opened; null on a first visit. It does not change. */
export const lastVisit: Visit | null = recall("visit", Visit) ?? null;

/** When the operator key was pinned, ISO 8601. */
export const pinnedAt = lastVisit?.pinned_at ?? new Date().toISOString();

let delay = SOONEST;
let timer: ReturnType<typeof setTimeout> | undefined;
let isLooking = false;
let isKeyCompared = false;
let isNameSought = false;

export function startWatching(): void {
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") void lookNow();
  });
  window.addEventListener("online", () => void lookNow());
  void lookNow();
}

/** Asks for the newest head at once. */
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
  if (!isKeyCompared) await compareKeys();
  const head = (await client.log.head()) ?? null;
  sight.value = { status: "proven", head, at: Date.now() };
  remember("visit", { head, seen_at: new Date().toISOString(), pinned_at: pinnedAt } satisfies Visit);
  delay = head && head.tree_size !== known ? SOONEST : Math.min(delay * SLOWING, LATEST);
  if (head && !isNameSought) void learnName();
}

/** Looks whether the service still shows the key that was pinned; the first one it ever showed is. */
async function compareKeys(): Promise<void> {
  const pinned = await client.log.operatorKey();
  operator.value = pinned;
  const shown = await http.get(OperatorPublicKey, "/log/operator-key");
  isKeyCompared = true;
  if (shown.fingerprint === pinned.fingerprint) return;
  const head = await http.get(TreeHeadSchema, "/log/sth").catch(() => null);
  raise(
    "The service shows another operator key than the one that this browser pinned.",
    { operatorKey: pinned.pem, known: lastVisit?.head ?? null, shown: head, proof: null, entry: null },
    { pinned: pinned.fingerprint, shown: shown.fingerprint },
  );
}

/** A name that the operator's signature covers; without one the page shows the service's address. Asked for once. */
async function learnName(): Promise<void> {
  isNameSought = true;
  const response = await fetch("/api/v1/log/checkpoint").catch(() => null);
  if (!response?.ok || !operator.value) return;
  const note = await response.text();
  const name = note.slice(0, note.indexOf("\n"));
  if (await verifyCheckpoint(note, operator.value, name)) logName.value = name;
}

async function lookFailed(error: unknown): Promise<void> {
  if (raiseFor(error)) {
    // A head by another key may be explained by the service itself.
    isKeyCompared = false;
    await compareKeys().catch(() => {});
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

/** Nobody looks at a hidden page. Half of what this address may ask is left to the reader's own clicks. */
function schedule(): void {
  clearTimeout(timer);
  if (document.visibilityState !== "visible") return;
  const allowance = generalAllowance();
  let wait = delay;
  if (allowance) {
    const untilReset = allowance.resetsAt - Date.now();
    const spare = allowance.remaining - allowance.limit / 2;
    wait = Math.max(wait, spare > 0 ? (untilReset * REQUESTS_A_LOOK) / spare : untilReset);
  }
  timer = setTimeout(() => void lookNow(), Math.min(wait, LATEST_AFTER_FAILURE));
}
