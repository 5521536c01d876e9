/** What the entry has to say that the log makes of a request. */
import type { Entry } from "../../../engine/verify/index.js";
import { type EventType, kindOf, type PayloadOf } from "../../../engine/verify/kinds.js";
import { same } from "../compare.js";

/** Stands for a value that the service chooses: the request does not say which. */
export const CHOSEN = Symbol("chosen by the service");

/** An entry's type and every member of its payload. */
export type Expected = {
  readonly [T in EventType]: {
    readonly event_type: T;
    readonly payload: { readonly [K in keyof PayloadOf<T>]: unknown } & Readonly<Record<string, unknown>>;
  };
}[EventType];

/** Members that entries of earlier versions of the service lack. Where an entry has one, it must say what was sent. */
const ADDED: ReadonlySet<string> = new Set(["event_type", "possession_signature", "new_key_signature"]);

/** The name of what an entry says differently, or does not say; undefined when it is the one expected. */
export function deviation(entry: Entry, { event_type, payload }: Expected): string | undefined {
  if (entry.event_type !== event_type) return "event_type";
  return Object.entries({ event_type, ...payload }).find(([name, value]) => {
    const isAbsent = !Object.hasOwn(entry.payload, name);
    if (value === CHOSEN) return isAbsent && Object.hasOwn(kindOf(event_type)!.payload, name);
    return isAbsent && ADDED.has(name) ? false : !same(entry.payload[name], value);
  })?.[0];
}
