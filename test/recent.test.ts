import fc from "fast-check";
import { expect, test } from "vitest";
import { Lately, Recent } from "#cairnlog/engine/base/recent.js";

const LIMIT = 4;

/** The reference model: keys in the order of their last use. */
class Model {
  keys: string[] = [];

  get(key: string): boolean {
    const isKept = this.keys.includes(key);
    this.keys = [...this.keys.filter((one) => one !== key), key].slice(-LIMIT);
    return isKept;
  }

  look(key: string): boolean {
    return this.keys.includes(key) && this.get(key);
  }

  delete(key: string): void {
    this.keys = this.keys.filter((one) => one !== key);
  }
}

const key = fc.constantFrom(..."abcdefgh");
const use = fc.oneof(
  { weight: 6, arbitrary: key.map((name) => ({ kind: "get", name }) as const) },
  { weight: 2, arbitrary: key.map((name) => ({ kind: "look", name }) as const) },
  { weight: 1, arbitrary: key.map((name) => ({ kind: "delete", name }) as const) },
  { weight: 1, arbitrary: fc.constant({ kind: "clear" } as const) },
);

test("it keeps the most recently used keys up to its limit, for any sequence of calls", () => {
  fc.assert(
    fc.property(fc.array(use, { maxLength: 60 }), (uses) => {
      const recent = new Recent<string, { key: string }>(LIMIT);
      const model = new Model();
      for (const one of uses) {
        if (one.kind === "get") {
          let isMade = false;
          const value = recent.made(one.name, () => {
            isMade = true;
            return { key: one.name };
          });
          expect(value.key).toBe(one.name);
          expect(isMade).toBe(!model.get(one.name));
        } else if (one.kind === "look") {
          expect(recent.get(one.name)?.key).toBe(model.look(one.name) ? one.name : undefined);
        } else if (one.kind === "delete") {
          recent.delete(one.name);
          model.delete(one.name);
        } else {
          recent.clear();
          model.keys = [];
        }
      }
      for (const name of "abcdefgh") expect(recent.get(name) !== undefined).toBe(model.keys.includes(name));
    }),
  );
});

test("a key is asked for again until another one takes its place", () => {
  const lately = new Lately();
  expect([lately.again(0), lately.again(7), lately.again(0), lately.again(7)]).toEqual([false, false, true, true]);
  const other = 7 + 1024;
  expect([lately.again(other), lately.again(7), lately.again(other)]).toEqual([false, false, false]);
  expect(lately.again(0)).toBe(true);
});
