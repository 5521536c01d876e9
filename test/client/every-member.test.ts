/** Tests a few methods in the way in which `every-member.long.test.ts` tests all. */
import { beforeAll, expect, test } from "vitest";
import { Suite, tableOf } from "./believing/suite.js";

let suite: Suite;
beforeAll(async () => {
  suite = await Suite.begin();
});

test.each(["keys.revoke", "policies.publish", "endorsements.issued", "webhooks.create", "trust.configure", "log.tile"])(
  "%s believes nothing but what the table says",
  async (method) => {
    expect(await suite.believed(method)).toEqual(tableOf(method));
  },
);
