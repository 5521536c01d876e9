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

/** Has `observer` called when another tab has remembered, or forgotten, something by this name. */
export function watchOthers(name: string, observer: () => void): void {
  window.addEventListener("storage", ({ key }) => {
    if (key === PREFIX + name) observer();
  });
}

/** Forgets everything about the log. */
export function forgetLog(): void {
  for (const name of OF_LOG) forget(name);
}

/** The client's memory of the log. Tabs share it. */
export const lastingStore: Store = {
  load: async () => recall("state", ClientState),
  save: async (state) => remember("state", state),
};
