/** Many keys, addresses, routes and sizes at once: every answer is that of its own request. `mixing.long.test.ts` goes on. */
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { Mixture, plans } from "./mix.js";

const open: Mixture[] = [];
afterAll(() => {
  for (const mixture of open) mixture.close();
});

test.each([
  ["uws", 2],
  ["node", 1],
] as const)(
  "over %s with %i front ends, requests at once are answered as if each were alone",
  async (transport, frontEnds) => {
    const mixture = await Mixture.open(transport, frontEnds, 3);
    open.push(mixture);
    const plan = plans({ writes: 0, reads: 50, attestations: 24, batches: 3, clients: 2 });
    let rounds = 0;
    await fc.assert(
      fc.asyncProperty(plan, async (deeds) => {
        await mixture.run(deeds);
        rounds++;
      }),
      { numRuns: 1, endOnFailure: true },
    );
    expect(rounds).toBe(1);
  },
);
