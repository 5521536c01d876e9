/** Commands as values: their names, and the allowed content of their inputs. */
import { expect, test } from "vitest";
import { commandNamed, define, type Transaction } from "#cairnlog/engine/log/state/commands.js";
import { DERIVED_TABLES, isRecorded, PRIVATE_TABLES } from "#cairnlog/engine/store/schema/schema.js";
import { openTestLog } from "../harness.js";

test("a command is found by its name, and runs with the input that it is given", async () => {
  const greet = define("test.greet", (transaction: Transaction, { name }: { readonly name: string }) => {
    transaction.append({ event_type: "note", payload: { name } });
    return `${name}, at ${transaction.timestamp}`;
  });
  expect(commandNamed("test.greet")).toBe(greet);
  expect(commandNamed("test.nobody")).toBeUndefined();
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

test("every table is either written by commands or follows from entries", () => {
  expect(DERIVED_TABLES.filter(isRecorded)).toEqual([]);
  expect(PRIVATE_TABLES.filter((table) => !isRecorded(table))).toEqual([]);
});
