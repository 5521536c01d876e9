/** What is kept is what was made, never more than the limit, and the half of it asked for last surely. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Recent } from "#cairnlog/engine/log/recent.js";

test("a value that was asked for lately is not made again", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), fc.array(fc.nat(20), { maxLength: 80 }), (limit, keys) => {
      const recent = new Recent<number, { readonly key: number }>(limit);
      const alive = new Map<number, { readonly key: number }>();
      const asked: number[] = [];
      for (const key of keys) {
        let isMade = false;
        const value = recent.get(key, () => {
          isMade = true;
          return { key };
        });
        expect(value.key).toBe(key);
        if (!isMade) expect(value).toBe(alive.get(key));
        const since = asked.lastIndexOf(key);
        const others = new Set(asked.slice(since + 1));
        if (since >= 0 && others.size < limit / 2) expect(isMade, `${key} after ${others.size} others`).toBe(false);
        alive.set(key, value);
        asked.push(key);
      }
    }),
  );
});

test("no more than the limit is kept, and nothing once it is cleared", () => {
  const recent = new Recent<number, number>(10);
  for (let key = 0; key < 100; key++) recent.get(key, () => key);
  let made = 0;
  for (let key = 99; key >= 0; key--) recent.get(key, () => ++made);
  expect(made).toBeGreaterThanOrEqual(90);
  recent.clear();
  recent.get(99, () => ++made);
  expect(recent.get(99, () => -1)).toBe(made);
});
