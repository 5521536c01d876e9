/** Every question that pauses, beside every change. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { closeWorlds, openWorld } from "../registry/world.js";
import { ASKED, CHANGES, type Crowded, changeScene, openCrowded } from "./changes.js";
import { inEveryOrder } from "./orders.js";

let crowded: Crowded;
beforeAll(async () => {
  crowded = await openCrowded(await openWorld());
});
afterAll(closeWorlds);

test.each(Object.entries(ASKED))("%s: what is true before a change or after it, in every order", async (_, ask) => {
  for (const [name, change] of Object.entries(CHANGES)) {
    const orders = await inEveryOrder((step) => changeScene(step, crowded, ask, change));
    expect(orders, name).toBeGreaterThan(2);
  }
});
