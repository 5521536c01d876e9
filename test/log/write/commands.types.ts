/** What of commands must not compile. Nothing here runs: `npm run typecheck` is the test. */
import type { KeyObject } from "node:crypto";
import { define, type PlainObject, type Transaction } from "#cairnlog/engine/log/state/commands.js";
import type { Projection } from "#cairnlog/engine/log/state/projection.js";
import type { RowOf } from "#cairnlog/engine/store/schema/schema.js";

/** An input is plain data. */
export function inputs(): void {
  interface Given {
    readonly list: readonly { readonly bytes: Uint8Array; readonly perhaps?: string }[];
    readonly any: PlainObject[string];
    readonly state: "on" | "off" | null;
  }
  define("test.plain", (_: Transaction, __: Given) => {});
  // @ts-expect-error an instance of a class
  define("test.instance", (_: Transaction, __: { readonly key: KeyObject }) => {});
  // @ts-expect-error a collection
  define("test.collection", (_: Transaction, __: { readonly names: ReadonlyMap<string, string> }) => {});
  // @ts-expect-error a function
  define("test.function", (_: Transaction, __: { readonly list: readonly (() => void)[] }) => {});
  // @ts-expect-error anything
  define("test.unknown", (_: Transaction, __: { readonly payload: { readonly [member: string]: unknown } }) => {});
}

/** A command writes private tables, and a projection derived ones. */
export function tables(): Projection {
  const secret = { phc: "", set_at: "" } as unknown as RowOf<"passwords">;
  const key = {} as unknown as RowOf<"keys">;
  define("test.doors", (transaction: Transaction, _: null) => {
    transaction.put("passwords", "someone", secret);
    // @ts-expect-error a row that follows from entries
    transaction.put("keys", "someone", key);
    // @ts-expect-error what the log is
    transaction.put("meta", "log", { format: 1, key_id: "", created_at: "" });
  });
  return {
    apply(_, state) {
      state.put("keys", "someone", key);
      // @ts-expect-error a row that follows from no entry
      state.put("passwords", "someone", secret);
      // @ts-expect-error what the log is
      state.put("meta", "log", { format: 1, key_id: "", created_at: "" });
    },
    addTerms() {},
  };
}
