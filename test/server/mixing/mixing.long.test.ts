/** As `mixing.test.ts`, with more at once, more front ends, and a second round where there are most of them. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Mixture, plans } from "./mix.js";

const EXTENT = { writes: 30, reads: 120, attestations: 80, batches: 12, clients: 6 };

test.each([
  ["uws", 3, 2],
  ["uws", 0, 1],
  ["node", 1, 1],
] as const)("over %s with %i front ends", async (transport, frontEnds, numRuns) => {
  const mixture = await Mixture.open(transport, frontEnds, 12);
  let rounds = 0;
  await fc.assert(
    fc.asyncProperty(plans(EXTENT), async (deeds) => {
      await mixture.run(deeds);
      rounds++;
    }),
    { numRuns, endOnFailure: true },
  );
  mixture.close();
  expect(rounds).toBe(numRuns);
});
