/** Shapes of untrusted JSON: small checks that can be combined. Each names the first place that is wrong. */
import { isHexHash, isSize } from "../bytes/encoding.js";

/** An object as `parseIJson` returns it. */
export type JsonObject = { readonly [member: string]: unknown };

/**
 * `undefined` if `value` fits, otherwise a sentence about the first misfit; `path` is a JSON Pointer (RFC 6901). `T` is
 * the type of fitting values. Only the compiler uses it.
 */
export interface Shape<out T = unknown> {
  (value: unknown, path: string): string | undefined;
  readonly fits?: T;
}

/** The type of the values that fit a shape. */
export type Fitting<S> = S extends Shape<infer T> ? T : never;

/** The type of the objects whose members fit these shapes. */
export type MembersOf<M extends Readonly<Record<string, Shape>>> = { readonly [K in keyof M]: Fitting<M[K]> };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether `value` has at most `limit` characters (code points, not UTF-16 code units). */
export function fits(value: string, limit: number): boolean {
  // The characters of a megabyte are not counted to find that it is too long.
  return value.length <= limit || (value.length <= 2 * limit && [...value].length <= limit);
}

/** A shape for values that pass `test`; `what` completes "must be …". */
export function where<T = unknown>(what: string, test: (value: unknown) => boolean): Shape<T> {
  return (value, path) => (test(value) ? undefined : `${path === "" ? "The value" : path} must be ${what}.`);
}

export const anyText: Shape<string> = where("a string", (value) => typeof value === "string");
export const hexHash: Shape<string> = where("64 lower-case hexadecimal characters", isHexHash);
export const anyObject: Shape<JsonObject> = where("an object", isObject);
export const positiveInteger: Shape<number> = where(
  "an integer of at least 1",
  (v) => Number.isSafeInteger(v) && Number(v) >= 1,
);
export const index: Shape<number> = where("an integer of at least 0", isSize);

/** A shape for exactly these texts. */
export function oneOf<const T extends string>(...texts: readonly T[]): Shape<T> {
  return where(`one of ${texts.join(", ")}`, (value) => texts.some((text) => text === value));
}

/** A shape that also accepts null. */
export function orNull<T>(shape: Shape<T>): Shape<T | null> {
  return (value, path) => (value === null ? undefined : shape(value, path));
}

/** A shape for arrays whose items all fit `item`. */
export function arrayOf<T>(item: Shape<T>): Shape<readonly T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) return `${path} must be an array.`;
    for (let i = 0; i < value.length; i++) {
      const misfit = item(value[i], `${path}/${i}`);
      if (misfit !== undefined) return misfit;
    }
    return undefined;
  };
}

/**
 * A shape for objects with all of `required` and any of `optional`. Other members are refused unless `others` allows
 * them.
 */
export function objectOf<R extends Readonly<Record<string, Shape>>>(
  required: R,
  optional: Readonly<Record<string, Shape>> = {},
  others: "refused" | "ignored" = "refused",
): Shape<MembersOf<R>> {
  const members = Object.entries(required);
  return (value, path) => {
    if (!isObject(value)) return `${path === "" ? "The value" : path} must be an object.`;
    for (const [name, shape] of members) {
      if (!Object.hasOwn(value, name)) return `${path}/${name} is missing.`;
      const misfit = shape(value[name], `${path}/${name}`);
      if (misfit !== undefined) return misfit;
    }
    for (const name of Object.keys(value)) {
      if (Object.hasOwn(required, name)) continue;
      const shape = Object.hasOwn(optional, name) ? optional[name] : undefined;
      if (shape === undefined && others === "ignored") continue;
      const misfit =
        shape === undefined ? `${path}/${name} is not a known member.` : shape(value[name], `${path}/${name}`);
      if (misfit !== undefined) return misfit;
    }
    return undefined;
  };
}
