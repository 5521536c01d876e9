/** As `mixing.test.ts`, with more at once, more front ends, and several rounds. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Mixture, plans } from "./mix.js";

const ROUNDS = 2;
const EXTENT = { writes: 30, reads: 200, attestations: 120, batches: 20, clients: 6 };

test.each([
  ["uws", 3],
  ["uws", 0],
  ["node", 1],
] as const)("over %s with %i front ends", async (transport, frontEnds) => {
  const mixture = await Mixture.open(transport, frontEnds, 12);
  let rounds = 0;
  await fc.assert(
    fc.asyncProperty(plans(EXTENT), async (deeds) => {
      await mixture.run(deeds);
      rounds++;
    }),
    { numRuns: ROUNDS, endOnFailure: true },
  );
  mixture.close();
  expect(rounds).toBe(ROUNDS);
});
