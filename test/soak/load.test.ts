/** The load generator sends what it says that it sends. */
import { expect, test } from "vitest";
import { sharesOf } from "../../bench/load/shares.js";

const sum = (shares: readonly number[]) => shares.reduce((all, share) => all + share, 0);

test("clients share connections and requests without a rest, and none has much more than another", () => {
  for (let total = 0; total < 40; total++)
    for (let parts = 1; parts <= 10; parts++) {
      const shares = sharesOf(total, parts);
      expect([shares.length, sum(shares)]).toEqual([parts, total]);
      expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
    }
});
