/**
 * What this browser remembers of the log: whose key signs it, the newest head it saw, when that was, and an alarm until
 * the reader puts it away. Where storage is forbidden it lasts as long as the page, which then says so.
 */
import Type, { type Static, type TSchema } from "typebox";
import { Check } from "typebox/value";
import { ClientState, type Store } from "../../client/index.js";
import { nullable } from "../../wire/common.js";
import { TreeHead } from "../../wire/log/log.js";

const PREFIX = "cairnlog.";

/** What was seen at the last look. */
export const Visit = Type.Object({
  head: nullable(TreeHead),
  seen_at: Type.String(),
  /** When the operator key was pinned. */
  pinned_at: Type.String(),
});
export type Visit = Static<typeof Visit>;

const fallback = new Map<string, string>();
let isLasting = true;

/** Whether what is remembered outlives the page. */
export const memoryLasts = (): boolean => isLasting;

/** Undefined when nothing of this form is remembered. */
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
    return Check(schema, value) ? (value as Static<S>) : undefined;
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
