/** The outcomes of attempts, on their way to disk: whichever commands the log refuses, each is written, in their order. */
import fc from "fast-check";
import { pino } from "pino";
import { expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import type { Attempted } from "#cairnlog/engine/registry/webhooks/deliveries.js";
import type { Outbox } from "#cairnlog/engine/registry/webhooks/outbox.js";
import type { WebhookRow } from "#cairnlog/engine/store/schema/rows.js";
import { BackgroundWork } from "#cairnlog/server/webhooks/background-work.js";
import { Outcomes } from "#cairnlog/server/webhooks/recording.js";
import { SubscriptionLane } from "#cairnlog/server/webhooks/subscription-lane.js";

test("a newer outcome never passes an older one, for its cursor says that all before it is recorded", async () => {
  const isRefused = fc.array(fc.boolean(), { maxLength: 8 });
  // How many outcomes come at once, before the next turn of the event loop. One command takes 256.
  const bursts = fc.array(fc.constantFrom(1, 2, 200, 300), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(isRefused, bursts, async (refusals, counts) => {
      const left = [...refusals];
      const written: number[] = [];
      const settled: number[] = [];
      const outbox = {
        async settle(outcomes: readonly Attempted[]) {
          await undefined;
          if (left.shift()) throw new CairnlogError("storage-full", "injected: there is no room");
          written.push(...outcomes.map(({ entryId }) => entryId));
          return { unhealthy: [], givenUp: 0, ended: [] };
        },
      } as unknown as Outbox;
      const logger = pino({ level: "silent" });
      const work = new BackgroundWork((_, run) => {
        setImmediate(run);
        return () => {};
      }, logger);
      const outcomes = new Outcomes({
        ...{ outbox, work, logger, settleMs: 0 },
        settled: (some) => settled.push(...some.map(({ outcome }) => outcome.entryId)),
      });
      const lane = new SubscriptionLane(1, {} as WebhookRow, { next: 0, waiting: 0, cursor: "none" });
      let entryId = 0;
      for (const count of counts) {
        for (let n = 0; n < count; n++) outcomes.add(lane, { entryId: entryId++ } as Attempted);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await expect.poll(() => settled.length, { interval: 1 }).toBe(entryId);
      expect(written).toEqual(Array.from({ length: entryId }, (_, n) => n));
      expect(settled).toEqual(written);
      await work.stop();
    }),
    { numRuns: 20 },
  );
});
