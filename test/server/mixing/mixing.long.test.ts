/** As `mixing.test.ts`, with more at once, more front ends or none, and also over node:http. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Mixture, plans } from "./mix.js";

const EXTENT = { writes: 30, reads: 120, attestations: 80, batches: 12, clients: 6 };

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
    { numRuns: 1, endOnFailure: true },
  );
  mixture.close();
  expect(rounds).toBe(1);
});
