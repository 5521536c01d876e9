/** Actors of the product in orders that follow from the seed: twice as many of them as find each fault that was planted. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Liar } from "../monitor/liar.js";
import { closeWorlds } from "../registry/world.js";
import { askingScene, forkedScene, openMonitor, QUESTIONS } from "./clients.js";
import { frontScene } from "./fronts.js";
import { inEveryOrder, inSomeOrders } from "./orders.js";
import { openWritten, ReaderThread, readingScene } from "./readers.js";
import { askedMeanwhile, changingScene, type Filed, openFiled, SUBJECTS, searchingBeside } from "./registry.js";

describe("beside a writer that commits, makes runs, merges them and removes the old ones", () => {
  let thread: ReaderThread;
  beforeAll(() => {
    thread = new ReaderThread();
  });
  afterAll(() => thread.end());
  test.each(["reader", "follower"] as const)("a %s shows one moment, and all of it", async (kind) => {
    const written = await openWritten(thread);
    const scenes = inSomeOrders((step) => readingScene(step, written, thread, kind), 24);
    await expect(scenes).resolves.toBeUndefined();
  });
});

describe("while keys, endorsements and runs change", () => {
  let filed: Filed;
  beforeAll(async () => {
    filed = await openFiled();
  });
  afterAll(closeWorlds);
  test.each(Object.entries(SUBJECTS))("%s is never older than the question", async (_, subject) => {
    const scenes = inSomeOrders((step) => changingScene(step, filed, subject), 16);
    await expect(scenes).resolves.toBeUndefined();
  });
  test.each(Object.values(SUBJECTS))(
    "asked while an older question is under way: not answered with it",
    async (subject) => {
      await expect(askedMeanwhile(filed, subject)).resolves.toBeUndefined();
    },
  );
  test("a search of the directory finds every key once", async () => {
    await expect(searchingBeside(filed, 12)).resolves.toBeUndefined();
  });
});

test("what a front end has answered, every other one shows, or waits for", async () => {
  const scenes = inSomeOrders((step) => frontScene(step, ["A", "B"], ["command", "call"]), 16);
  await expect(scenes).resolves.toBeUndefined();
});

describe("requests and answers in any order", () => {
  const liar = Liar.forTests();
  test("an honest log is believed, and the head that is kept only grows", async () => {
    const scenes = inSomeOrders((step) => askingScene(step, liar, Object.keys(QUESTIONS)), 12);
    await expect(scenes).resolves.toBeUndefined();
  });
  test("of two heads of histories that part, one is refused", async () => {
    expect(await inEveryOrder((step) => forkedScene(step, liar))).toBeGreaterThan(1);
  });
  test("a monitor of an honest log raises no alarm", async () => {
    const monitor = openMonitor(liar);
    const scenes = inSomeOrders((step) => monitor.scene(step), 24);
    await expect(scenes.finally(() => monitor.close())).resolves.toBeUndefined();
  });
});
