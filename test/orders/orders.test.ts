/** The scheduler of the tests: it knows every order, and says which one was wrong. */
import { expect, test } from "vitest";
import { inEveryOrder, inSomeOrders, type NewScene } from "./orders.js";

/** Two that read a number, and write one more than they have read. */
const counting =
  (isLocked: boolean): NewScene =>
  (step) => {
    let number = 0;
    const add = (name: string) => async () => {
      if (isLocked) await step(`${name} adds`, () => number++);
      else {
        const read = await step(`${name} reads`, () => number);
        await step(`${name} writes`, () => {
          number = read + 1;
        });
      }
    };
    return { actors: [add("A"), add("B")], end: () => expect(number).toBe(2) };
  };

test("every order of steps is played once", async () => {
  const seen: string[] = [];
  const orders = await inEveryOrder((step) => {
    const order: string[] = [];
    const letters = (name: string) => async () => {
      for (let n = 0; n < 3; n++) await step(name, () => void order.push(name));
    };
    return { actors: [letters("a"), letters("b")], end: () => void seen.push(order.join("")) };
  });
  expect(new Set(seen).size).toBe(20);
  expect([orders, seen.length]).toEqual([20, 20]);
});

test("an update that is lost is found, with the order", async () => {
  await expect(inEveryOrder(counting(false))).rejects.toThrow("The order was: A reads, B reads, A writes, B writes.");
  await expect(inSomeOrders(counting(false), 20)).rejects.toThrow(/The order was: . reads, . reads/);
  expect(await inEveryOrder(counting(true))).toBe(2);
});

test("a step ends before the next one begins, however long it takes; checks come between", async () => {
  let checks = 0;
  const orders = await inEveryOrder((step) => {
    let running = 0;
    const slow = async () => {
      for (let n = 0; n < 2; n++)
        await step("slow", async () => {
          expect(++running).toBe(1);
          await new Promise((resolve) => setTimeout(resolve, 2));
          running--;
        });
    };
    return {
      actors: [slow, slow],
      check: () => {
        checks++;
        expect(running).toBe(0);
      },
    };
  });
  expect([orders, checks]).toEqual([6, 24]);
});

test("an actor that fails ends the order, and its scene is closed", async () => {
  let [steps, closed] = [0, 0];
  const failing: NewScene = (step) => ({
    actors: [
      () => step("fails", () => Promise.reject(new Error("a failure"))),
      async () => {
        for (let n = 0; n < 5; n++) await step("goes on", () => void steps++);
      },
    ],
    close: () => void closed++,
  });
  await expect(inEveryOrder(failing)).rejects.toThrow("a failure\nThe order was: fails.");
  expect([steps, closed]).toEqual([5, 1]);
});
