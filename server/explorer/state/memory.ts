/**
 * The memory of the log in this browser: the key that signs it, the newest verified head and when it was seen, and an
 * alarm until the reader dismisses it. If storage is forbidden, the memory ends with the page, and the page says so.
 */
import Type, { type Static, type TSchema } from "typebox";
import { ClientState, type Store } from "../../client/index.js";
import { fitsSchema } from "../../wire/check.js";
import { nullable } from "../../wire/common.js";
import { TreeHead } from "../../wire/log/log.js";

const PREFIX = "cairnlog.";

/** The state at the last successful check. */
export const Visit = Type.Object({
  head: nullable(TreeHead),
  seen_at: Type.String(),
  /** When the operator key was pinned. */
  pinned_at: Type.String(),
});
export type Visit = Static<typeof Visit>;

const fallback = new Map<string, string>();
let isLasting = true;

/** Whether the memory survives the page. */
export const memoryLasts = (): boolean => isLasting;

/** Undefined if nothing of this form is stored. */
export function recall<S extends TSchema>(name: string, schema: S): Static<S> | undefined {
  let text: string | null;
  try {
    text = localStorage.getItem(PREFIX + name);
  } catch {
    isLasting = false;
    text = fallback.get(name) ?? null;
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
  try {
    localStorage.setItem(PREFIX + name, text);
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

/** The client's memory of the log. Tabs share it. */
export const store: Store = {
  load: async () => recall("state", ClientState),
  save: async (state) => remember("state", state),
};
