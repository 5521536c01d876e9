/** Types that follow from schemas, for those who make answers and read requests. */
import type { Static, TSchema } from "typebox";

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;

/** A value that fits a schema, and that nobody changes. */
export type Value<S extends TSchema> = Frozen<Static<S>>;

/** The body of a request without the proof in it, which is checked before. */
export type Body<S extends TSchema> = Omit<Value<S>, "auth">;
