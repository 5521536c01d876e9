/** Comparing what was sent with what comes back. What is absent counts as null. */
import { canonicalJson, canonicalTimestamp, normaliseContentHash } from "../../engine/verify/index.js";
import { ClientError } from "./error.js";

/** Whether two values have the same canonical JSON. */
export function same(a: unknown, b: unknown): boolean {
  return canonicalJson(a ?? null) === canonicalJson(b ?? null);
}

/** Some members of a `T`, whatever their values. */
export type Members<T> = { readonly [K in keyof T]?: unknown };

/** The name of a member of `expected` that `actual` has with another value; undefined when all are the same. */
export function differing<T extends object>(actual: T, expected: Members<T>): string | undefined {
  const names = Object.keys(expected) as (keyof T & string)[];
  return names.find((name) => !same(actual[name], expected[name]));
}

/**
 * An answer about something that is not on the log, when it has every member of `expected` with that value.
 * @param what was answered, as the beginning of a sentence
 * @throws ClientError `malformed-answer`
 */
export function confirmed<T extends object>(answer: T, expected: Members<T>, what: string): T {
  const member = differing(answer, expected);
  if (member === undefined) return answer;
  throw new ClientError("malformed-answer", `${what} is not what was asked for: it differs in ${member}.`);
}

/** Items of a list, each of which must have these values. @throws ClientError `malformed-answer` */
export async function* matching<T extends object>(
  items: AsyncIterable<T>,
  expected: Members<T>,
): AsyncGenerator<T, void, undefined> {
  for await (const item of items) yield confirmed(item, expected, "An item of the list");
}

/** A fingerprint in any spelling as the log writes it; what is none stays as it is, for the service to refuse. */
export const asLogged = (fingerprint: string): string => normaliseContentHash(fingerprint) ?? fingerprint;

/** A moment in any spelling as the log writes it, null where none is given; what is none stays as it is. */
export function moment(time: string | null | undefined): string | null {
  return time == null ? null : (canonicalTimestamp(time) ?? time);
}
