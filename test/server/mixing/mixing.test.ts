/**
 * Many keys, addresses, routes and sizes at once: every answer is that of its own request. `mixing.long.test.ts` goes on, also
 * over node:http and without front ends.
 */
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { Mixture, plans } from "./mix.js";

let mixture: Mixture | undefined;
afterAll(() => mixture?.close());

test("over uws with 2 front ends, requests at once are answered as if each were alone", async () => {
  const opened = await Mixture.open("uws", 2, 3);
  mixture = opened;
  const plan = plans({ writes: 0, reads: 50, attestations: 24, batches: 3, clients: 2 });
  let rounds = 0;
  await fc.assert(
    fc.asyncProperty(plan, async (deeds) => {
      await opened.run(deeds);
      rounds++;
    }),
    { numRuns: 1, endOnFailure: true },
  );
  expect(rounds).toBe(1);
});
