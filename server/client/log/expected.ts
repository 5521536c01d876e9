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

/** The name of what an entry says differently, or does not say; undefined when it is the one expected. */
export function deviation(entry: Entry, { event_type, payload }: Expected): string | undefined {
  if (entry.event_type !== event_type) return "event_type";
  const { payload: members, added = [] } = kindOf(event_type)!;
  // Entries of earlier versions of the service lack these. Where an entry has one, it must say what was sent.
  const isNew = (name: string) => name === "event_type" || added.includes(name);
  return Object.entries({ event_type, ...payload }).find(([name, value]) => {
    const isAbsent = !Object.hasOwn(entry.payload, name);
    if (value === CHOSEN) return isAbsent && Object.hasOwn(members, name);
    return isAbsent && isNew(name) ? false : !same(entry.payload[name], value);
  })?.[0];
}
