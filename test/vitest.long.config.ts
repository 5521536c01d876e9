import { defineConfig } from "vitest/config";
import { TESTS } from "./vitest.config.js";

/**
 * Configuration for `npm run test:long`: tests that take minutes or depend on chance, such as kills under load,
 * fuzzing, and all pairs of sizes of a tree.
 */
export default defineConfig({
  test: {
    ...TESTS,
    include: ["test/**/*.long.test.ts"],
    exclude: [],
    testTimeout: 900_000,
    hookTimeout: 300_000,
  },
});
