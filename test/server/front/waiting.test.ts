import fc from "fast-check";
import { expect, test } from "vitest";
import { PendingCalls } from "#cairnlog/server/front/pending-calls.js";

test("whoever waits is found by the number that it was given, once, and numbers of others stay theirs", () => {
  const steps = fc.array(fc.oneof(fc.constant("add" as const), fc.nat()), { maxLength: 200 });
  fc.assert(
    fc.property(steps, (all) => {
      const waiting = new PendingCalls<object>();
      const model = new Map<number, object>();
      for (const step of all) {
        if (step === "add" || !model.size) {
          const one = {};
          const number = waiting.add(one);
          expect(model.has(number)).toBe(false);
          model.set(number, one);
        } else {
          const [number, one] = [...model][step % model.size]!;
          expect(waiting.take(number)).toBe(one);
          model.delete(number);
        }
      }
      expect(new Set(waiting.takeAll())).toEqual(new Set(model.values()));
      expect(waiting.takeAll()).toEqual([]);
      expect(waiting.add({})).toBe(0);
    }),
  );
});

test("numbers are given again: no more are in use than have waited at once", () => {
  const waiting = new PendingCalls<number>();
  const numbers = Array.from({ length: 1000 }, (_, i) => {
    const pair = [waiting.add(i), waiting.add(i)];
    for (const number of pair) waiting.take(number);
    return Math.max(...pair);
  });
  expect(Math.max(...numbers)).toBe(1);
});

test("no two who wait have one number, however many there are and whoever leaves", () => {
  const waiting = new PendingCalls<number>();
  const numbers = Array.from({ length: 2000 }, (_, i) => waiting.add(i));
  expect(new Set(numbers).size).toBe(2000);
  for (const i of [1999, 0, 700, 701]) expect(waiting.take(numbers[i]!)).toBe(i);
  const later = Array.from({ length: 10 }, (_, i) => [waiting.add(2000 + i), 2000 + i] as const);
  const left = [...numbers.entries()].filter(([i]) => ![1999, 0, 700, 701].includes(i));
  for (const [i, number] of left) expect(waiting.take(number)).toBe(i);
  for (const [number, i] of later) expect(waiting.take(number)).toBe(i);
});
