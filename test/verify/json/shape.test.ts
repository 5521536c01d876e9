/** Shapes: matching values, and the message about the first place that does not match. */
import { describe, expect, it } from "vitest";
import {
  anyObject,
  anyText,
  arrayOf,
  hexHash,
  index,
  isObject,
  objectOf,
  orNull,
  positiveInteger,
  type Shape,
  where,
} from "#cairnlog/engine/verify/json/shape.js";
import { sha256 } from "../keys/keys.js";

it("an object is neither null nor an array", () => {
  for (const value of [{}, { a: 1 }, Object.create(null), new Date(0)]) expect(isObject(value)).toBe(true);
  for (const value of [null, [], "x", 1, undefined, () => 0, true]) expect(isObject(value)).toBe(false);
});

it("a misfit names its place, or the value as a whole", () => {
  const even = where("even", (value) => Number(value) % 2 === 0);
  expect(even(2, "")).toBeUndefined();
  expect(even(1, "")).toBe("The value must be even.");
  expect(even(1, "/a/0")).toBe("/a/0 must be even.");
});

describe.each([
  ["text", anyText, ["", "x"], [1, null, ["x"], undefined], "a string"],
  ["hexHash", hexHash, [sha256("x")], ["", sha256("x").toUpperCase(), 1], "64 lower-case hexadecimal characters"],
  ["anyObject", anyObject, [{}, { a: 1 }], [null, [], "{}"], "an object"],
  [
    "positiveInteger",
    positiveInteger,
    [1, 2 ** 53 - 1],
    [0, -1, 1.5, 2 ** 53, "1", Number.NaN],
    "an integer of at least 1",
  ],
  ["index", index, [0, 1, 2 ** 53 - 1], [-1, 0.5, 2 ** 53, "0", null], "an integer of at least 0"],
] as const)("%s", (_, typed, fitting, misfits, wanted) => {
  const shape: Shape = typed;
  it("takes what it is for", () => {
    for (const value of fitting) expect(shape(value, "/x")).toBeUndefined();
  });
  it("takes nothing else", () => {
    for (const value of misfits) expect(shape(value, "/x")).toBe(`/x must be ${wanted}.`);
  });
  it("takes null where that may stand for it", () => {
    expect(orNull(shape)(null, "/x")).toBeUndefined();
    expect(orNull(shape)(undefined, "/x")).toBe(`/x must be ${wanted}.`);
    expect(orNull(shape)(fitting[0], "/x")).toBeUndefined();
  });
});

it("an array is looked at up to its first misfit", () => {
  const texts = arrayOf(anyText);
  expect(texts([], "/x")).toBeUndefined();
  expect(texts(["a", "b"], "/x")).toBeUndefined();
  expect(texts([1, "b"], "/x")).toBe("/x/0 must be a string.");
  expect(texts(["a", 2, 3], "/x")).toBe("/x/1 must be a string.");
  for (const value of [{}, "ab", null, { length: 0 }]) expect(texts(value, "/x")).toBe("/x must be an array.");
});

describe("an object", () => {
  const strict = objectOf({ a: anyText, b: index }, { c: anyText });

  it("has all that is required, and may have what is optional", () => {
    expect(strict({ a: "", b: 0 }, "")).toBeUndefined();
    expect(strict({ c: "x", b: 0, a: "" }, "/o")).toBeUndefined();
    expect(strict({ a: "" }, "/o")).toBe("/o/b is missing.");
    expect(strict({}, "")).toBe("/a is missing.");
    expect(objectOf({})({}, "")).toBeUndefined();
  });

  it("has members of the right kind", () => {
    expect(strict({ a: 1, b: 0 }, "/o")).toBe("/o/a must be a string.");
    expect(strict({ a: "", b: -1 }, "/o")).toBe("/o/b must be an integer of at least 0.");
    expect(strict({ a: "", b: 0, c: 1 }, "/o")).toBe("/o/c must be a string.");
    expect(strict({ a: "", b: 0, c: undefined }, "/o")).toBe("/o/c must be a string.");
  });

  it("has no other member, unless those are ignored", () => {
    expect(strict({ a: "", b: 0, d: 1 }, "/o")).toBe("/o/d is not a known member.");
    expect(objectOf({ a: anyText })({ a: "", c: 1 }, "")).toBe("/c is not a known member.");
    const lax = objectOf({ a: anyText }, { c: anyText }, "ignored");
    expect(lax({ a: "", d: 1 }, "")).toBeUndefined();
    expect(lax({ a: "", d: 1, c: 1 }, "")).toBe("/c must be a string.");
    expect(lax({ d: 1 }, "")).toBe("/a is missing.");
  });

  it("has its members itself, not from what all objects have", () => {
    expect(objectOf({ toString: anyText })({}, "")).toBe("/toString is missing.");
    expect(strict({ a: "", b: 0, toString: 1 }, "")).toBe("/toString is not a known member.");
    expect(strict(JSON.parse('{"a":"","b":0,"__proto__":1}'), "")).toBe("/__proto__ is not a known member.");
  });

  it("is an object", () => {
    for (const value of [null, [], "x", 1]) {
      expect(strict(value, "")).toBe("The value must be an object.");
      expect(strict(value, "/o")).toBe("/o must be an object.");
    }
  });
});
