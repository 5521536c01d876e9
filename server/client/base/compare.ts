/** Compares requests with answers. Absent values count as null. */
import { canonicalJson, normaliseContentHash, requestedTime } from "../../../engine/verify/index.js";
import { ClientError } from "./error.js";

/** Whether two values have the same canonical JSON. */
export function same(a: unknown, b: unknown): boolean {
  return canonicalJson(a ?? null) === canonicalJson(b ?? null);
}

/** Some members of a `T`, with any values. */
export type Members<T> = { readonly [K in keyof T]?: unknown };

/** The name of a member of `expected` that has another value in `actual`; undefined if all are equal. */
export function differingMember<T extends object>(actual: T, expected: Members<T>): string | undefined {
  const names = Object.keys(expected) as (keyof T & string)[];
  return names.find((name) => !same(actual[name], expected[name]));
}

/**
 * Returns an answer about data outside the log if every member of `expected` has its expected value.
 * @param what names the answer, as the beginning of a sentence
 * @throws ClientError `malformed-answer`
 */
export function confirmed<T extends object>(answer: T, expected: Members<T>, what: string): T {
  const member = differingMember(answer, expected);
  if (member === undefined) return answer;
  throw new ClientError("malformed-answer", `${what} is not what was asked for: it differs in ${member}.`);
}

/**
 * Items of a list, each of which must have these values.
 * @param isOfState whether an item leaves the list when its state changes. Then all are read before the first is given: whoever
 *   gets one may change it, and those on the next page would move up to places that were read
 * @throws ClientError `malformed-answer`
 */
export async function* matching<T extends object>(
  items: AsyncIterable<T>,
  expected: Members<T>,
  isOfState = false,
): AsyncGenerator<T, void, undefined> {
  const all: T[] = [];
  for await (const item of items) {
    confirmed(item, expected, "An item of the list");
    if (isOfState) all.push(item);
    else yield item;
  }
  yield* all;
}

/**
 * A fingerprint or a hash in the log's form. A text that is neither is returned unchanged, so that the service refuses it.
 */
export const asLogged = (hash: string): string => normaliseContentHash(hash) ?? hash;

/** A moment in the log's form, or null if it is absent. A text that is no moment is returned unchanged. */
export function moment(time: string | null | undefined): string | null {
  return time == null ? null : (requestedTime(time) ?? time);
}
