/** How many alerts one key files about another decides nothing about what the trust of that key costs. */
import { afterAll, expect, test } from "vitest";
import { countReads } from "../counting.js";
import { newCase } from "../endorsements/endorsementcase.js";
import { closeWorlds, openWorld } from "../world.js";

afterAll(closeWorlds);

test("trust reads one row for all alerts of one key about another, and judges by the newest", async () => {
  const world = await openWorld(undefined, undefined, { endorsementActivationDelaySeconds: 0 });
  const { endorsements, trust } = world.registry;
  const one = await newCase(world);
  await one.offer();
  await one.accept();
  const alert = () =>
    endorsements.alert({
      endorser_fingerprint: one.endorser,
      compromised_fingerprint: one.endorsed,
      reason: "stolen",
      evidence: "e".repeat(5_000),
    });
  await alert();
  const cost = () => countReads(() => trust.standing(one.endorsed));
  // The first evaluation of trust is kept.
  await cost();
  const { rows, rowBytes } = await cost();
  for (let n = 0; n < 50; n++) await alert();
  await cost();
  expect(await cost()).toMatchObject({ rows, rowBytes });
  expect(await trust.standing(one.endorsed)).toMatchObject({ trust_level: 0 });

  // An endorsement that was offered after the newest alert withdraws it.
  await one.withdraw();
  await one.offer();
  await one.accept();
  expect((await trust.standing(one.endorsed)).trust_level).toBeGreaterThan(0);
  await alert();
  expect(await trust.standing(one.endorsed)).toMatchObject({ trust_level: 0 });
});
