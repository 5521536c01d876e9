import { expect, test } from "vitest";
import { Lock } from "#cairnlog/engine/base/lock.js";

test("one holds it at a time, in the order of asking, whatever becomes of those before", async () => {
  const lock = new Lock();
  const seen: string[] = [];
  const work = (name: string, error?: Error) =>
    lock.run(async () => {
      seen.push(`${name} begins`);
      await new Promise(setImmediate);
      seen.push(`${name} ends`);
      if (error) throw error;
      return name;
    });
  const leave = await lock.enter();
  const done = Promise.allSettled([work("a"), work("b", new Error("b fails")), work("c")]);
  const settled = lock.settled().then(() => seen.push("settled"));
  await new Promise(setImmediate);
  expect(seen).toEqual([]);
  leave();
  // It has left already, so nobody else is let in.
  leave();
  expect((await done).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  await settled;
  expect(seen).toEqual([...["a", "b", "c"].flatMap((name) => [`${name} begins`, `${name} ends`]), "settled"]);
});
