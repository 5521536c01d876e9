/** Commands as values: their names, and the allowed content of their inputs. */
import type { KeyObject } from "node:crypto";
import { expect, test } from "vitest";
import {
  commandNamed,
  commandNames,
  define,
  type Plain,
  type Transaction,
} from "#cairnlog/engine/log/write/commands.js";
import type { Projection } from "#cairnlog/engine/log/write/projection.js";
import type { RowOf } from "#cairnlog/engine/store/schema.js";
import { DERIVED_TABLES, isRecorded, PRIVATE_TABLES } from "#cairnlog/engine/store/schema.js";
import { openTestLog } from "../harness.js";

test("a command is found by its name, and runs with the input that it is given", async () => {
  const greet = define("test.greet", (transaction: Transaction, { name }: { readonly name: string }) => {
    transaction.append({ event_type: "note", payload: { name } });
    return `${name}, at ${transaction.timestamp}`;
  });
  expect(commandNamed("test.greet")).toBe(greet);
  expect(commandNamed("test.nobody")).toBeUndefined();
  expect(commandNames()).toContain("test.greet");
  const { log } = await openTestLog();
  const { value, receipts } = await log.execute(greet, { name: "Ada" });
  expect(value).toBe(`Ada, at ${receipts[0]!.timestamp}`);
  expect(receipts[0]!.json).toEqual(log.entryJson(1));
  expect(log.receipt(0)).toEqual(receipts[0]);
});

test("no two commands have one name", () => {
  define("test.once", (_: Transaction, __: null) => {});
  expect(() => define("test.once", (_: Transaction, __: null) => {})).toThrow(RangeError);
});

test("an input is plain data, or it does not compile", () => {
  interface Given {
    readonly list: readonly { readonly bytes: Uint8Array; readonly perhaps?: string }[];
    readonly any: Plain;
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
});

test("a command writes private tables, and a projection derived ones, or it does not compile", () => {
  const secret = { phc: "", set_at: "" } as unknown as RowOf<"passwords">;
  const key = {} as unknown as RowOf<"keys">;
  define("test.doors", (transaction: Transaction, _: null) => {
    transaction.put("passwords", "someone", secret);
    // @ts-expect-error a row that follows from entries
    transaction.put("keys", "someone", key);
    // @ts-expect-error what the log is
    transaction.put("meta", "log", { format: 1, key_id: "", created_at: "" });
  });
  const projection: Projection = {
    apply(_, state) {
      state.put("keys", "someone", key);
      // @ts-expect-error a row that follows from no entry
      state.put("passwords", "someone", secret);
      // @ts-expect-error what the log is
      state.put("meta", "log", { format: 1, key_id: "", created_at: "" });
    },
    addTerms() {},
  };
  expect(projection.apply).toBeTypeOf("function");
  expect(DERIVED_TABLES.filter(isRecorded)).toEqual([]);
  expect(PRIVATE_TABLES.filter((table) => !isRecorded(table))).toEqual([]);
});
