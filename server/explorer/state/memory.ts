/**
 * The memory of the log in this browser: the key that signs it, the newest verified head and when it was seen, and an
 * alarm until the reader dismisses it. If storage is forbidden, or the log is a demonstration, this memory ends with the page,
 * and the page says so.
 */
import Type, { type Static, type TSchema } from "typebox";
import { fitsSchema } from "../../../engine/contract/check.js";
import { nullable } from "../../../engine/contract/common.js";
import { TreeHead } from "../../../engine/contract/log/log.js";
import { ClientState, type Store } from "../../client/index.js";
import { Cell } from "./cell.js";

/** Logs below several paths of one address have a memory each. */
const PREFIX = `cairnlog${window.location.pathname.replace(/[^/]*$/, "").slice(0, -1)}.`;
/** What is remembered of the log. The rest is the reader's. */
const OF_LOG = ["alarm", "state", "visit", "name", "published"];

/** The state at the last successful check. */
export const Visit = Type.Object({
  head: nullable(TreeHead),
  seen_at: Type.String(),
  /** When the operator key was pinned. */
  pinned_at: Type.String(),
});
export type Visit = Static<typeof Visit>;

/** What storage has not taken, and what is not to last. */
const fallback = new Map<string, string>();
let isLasting = true;
/** The log is forgotten, and the page is about to end. */
let isLeft = false;

/** Whether the log is a demonstration (`server/client/base/demonstration.ts`). */
export const isDemonstration = new Cell(false);

/** Whether the memory of the log survives the page. */
export const memoryLasts = (): boolean => isLasting && !isDemonstration.value;

/** Undefined if nothing of this form is stored. */
export function recall<S extends TSchema>(name: string, schema: S): Static<S> | undefined {
  // Newer than what is stored: it was not taken there.
  let text = fallback.get(name) ?? null;
  try {
    text ??= localStorage.getItem(PREFIX + name);
  } catch {
    isLasting = false;
  }
  if (text === null) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return fitsSchema(schema, value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function remember(name: string, value: unknown): void {
  if (isLeft && OF_LOG.includes(name)) return;
  const text = JSON.stringify(value);
  if (isDemonstration.value && OF_LOG.includes(name)) return void fallback.set(name, text);
  try {
    localStorage.setItem(PREFIX + name, text);
    fallback.delete(name);
  } catch {
    isLasting = false;
    fallback.set(name, text);
  }
}

export function forget(name: string): void {
  fallback.delete(name);
  try {
    localStorage.removeItem(PREFIX + name);
  } catch {
    isLasting = false;
  }
}

/** Has `observer` called when another tab has changed what is remembered by this name. */
export function watchOthers(name: string, observer: (isForgotten: boolean) => void): void {
  window.addEventListener("storage", ({ key, newValue }) => {
    if (key === PREFIX + name) observer(newValue === null);
  });
}

/** Forgets everything about the log, in all tabs: the next request is like a first visit. */
export function forgetLog(): void {
  leave();
  for (const name of OF_LOG) forget(name);
}

// A tab that went on with what another one has forgotten would accuse the log of that, in all tabs.
watchOthers("state", (isForgotten) => {
  if (isForgotten) leave();
});

/** Begins anew. What is under way until then knows the log that is forgotten, and must not be remembered. */
function leave(): void {
  isLeft = true;
  window.location.reload();
}

/** The client's memory of the log. Tabs share it. */
export const lastingStore: Store = {
  load: async () => recall("state", ClientState),
  save: async (state) => remember("state", state),
};
