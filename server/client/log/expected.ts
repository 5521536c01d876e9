/** The expected content of the entry that the log makes of a request. */

import { type EventType, kindOf, type PayloadOf } from "../../../engine/verify/events/kinds.js";
import { membersIn } from "../../../engine/verify/events/withheld.js";
import type { Entry } from "../../../engine/verify/index.js";
import { same } from "../base/compare.js";

/** Stands for a value that the service chooses, so that any value is accepted. */
export const CHOSEN = Symbol("chosen by the service");

/** Stands for the time of the entry. */
export const OF_ENTRY = Symbol("the time of the entry");

/** An entry's type and every member of its payload. */
export type Expected = {
  readonly [T in EventType]: {
    readonly event_type: T;
    readonly payload: { readonly [K in keyof PayloadOf<T>]: unknown } & Readonly<Record<string, unknown>>;
  };
}[EventType];

/** The name of a member that differs from the expected entry; undefined if none does. */
export function deviation(entry: Entry, { event_type, payload }: Expected): string | undefined {
  if (entry.event_type !== event_type) return "event_type";
  const { payload: members, added = [] } = kindOf(event_type)!;
  // Entries of earlier versions of the service lack these members. If an entry has one, it must have the sent value.
  const isNew = (name: string) => name === "event_type" || added.includes(name);
  const shown = membersIn(entry);
  return Object.entries({ event_type, ...payload }).find(([name, value]) => {
    const isAbsent = !Object.hasOwn(shown, name);
    if (value === CHOSEN) return isAbsent && Object.hasOwn(members, name);
    const wanted = value === OF_ENTRY ? entry.timestamp : value;
    return isAbsent && isNew(name) ? false : !same(shown[name], wanted);
  })?.[0];
}
