/** How many addresses there is room for in the budgets of stored bytes. */
import { describe, expect, test } from "vitest";
import type { LayeredState } from "#cairnlog/engine/log/state/rows.js";
import { Budgets } from "#cairnlog/engine/log/write/budgets.js";

const DAY_S = 86_400;
const CLIENT = "192.0.2.1";

describe("addresses that an attacker makes by the hundred thousand", () => {
  /** A state with these tables alone. */
  function memory() {
    const rows = new Map<string, unknown>();
    const state = {
      get: (table: string, key: string | number) => rows.get(`${table} ${key}`),
      put: (table: string, key: string | number, row: unknown) => rows.set(`${table} ${key}`, row),
    };
    return { rows, state: state as unknown as LayeredState };
  }
  const address = (i: number) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;

  test("have at most 16,384 rows of 16 windows; what is spent stays spent, and nobody is refused", () => {
    const { rows, state } = memory();
    const budgets = new Budgets({ perAddress: 1000, fromStrangers: null });
    const take = (client: string, bytes: number) => {
      budgets.begin(state);
      budgets.take({ client, isReached: false }, bytes, 1, false);
      budgets.end(1);
    };
    take(CLIENT, 1000);
    for (let i = 0; i < 280_000; i++) take(address(i), 10);
    const sets = [...rows.keys()].filter((key) => key.startsWith("byteBudgets"));
    expect(sets.length).toBeLessThanOrEqual(16_384);
    const longest = Math.max(...sets.map((key) => (rows.get(key) as { windows: number[] }).windows.length));
    expect(longest).toBe(3 * 16);
    expect(() => take(CLIENT, 1)).toThrow(/spent/);
    // A row that is full gives its windows to others when theirs have ended.
    budgets.begin(state);
    expect(() => budgets.take({ client: CLIENT, isReached: false }, 1000, DAY_S + 1, false)).not.toThrow();
  });
});
