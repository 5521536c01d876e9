/** The formula of a trust level with its numbers, for people. */
import { expect, test } from "vitest";
import { trustSum } from "#cairnlog/server/client/signing/trust-sum.js";

const over = (...factors: number[]) => ({ keys: factors.map((_, i) => `${i}`).concat("key"), factors });

test("names what the key has of itself and what comes over each path", () => {
  // docs/trust.md, "An example": Ada, Cleo, and Cleo with the discount of Ada, 1−(1−½·0.5·0.5)(1−½·0.5)
  expect(trustSum({ trust_level: 0.55, paths: [over(0.5)] })).toBe("1 − (1 − 0.1) × (1 − 0.5)");
  expect(trustSum({ trust_level: 0.49375, paths: [over(0.5, 0.5), over(0.5, 0.5)] })).toBe(
    "1 − (1 − 0.1) × (1 − 0.25) × (1 − 0.25)",
  );
});

test("a key that is not active, or alerted about, has nothing of itself", () => {
  expect(trustSum({ trust_level: 0.5, paths: [over(0.5)] }, (value) => value.toFixed(1))).toBe(
    "1 − (1 − 0.0) × (1 − 0.5)",
  );
});

test("is not there where the paths do not make the level, or there are none", () => {
  expect(trustSum({ trust_level: 0.6, paths: [over(0.5)] })).toBeNull();
  expect(trustSum({ trust_level: 0.1, paths: [] })).toBeNull();
});
