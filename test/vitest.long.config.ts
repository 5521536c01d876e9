import { defineConfig } from "vitest/config";
import { inProjects, OVER_NODE_HTTP, TESTS } from "./vitest.config.js";

const LONG = { testTimeout: 900_000, hookTimeout: 300_000, exclude: [] };

/**
 * Configuration for `npm run test:long`: tests that take minutes, start many commands, or depend on chance, such as kills
 * under load, fuzzing, and all pairs of sizes of a tree; and tests of HTTP once more over `node:http`.
 */
export default defineConfig({
  test: {
    ...TESTS,
    projects: [
      ...inProjects({ ...TESTS, ...LONG, include: ["test/**/*.long.test.ts"] }),
      { test: { ...TESTS, ...LONG, ...OVER_NODE_HTTP } },
    ],
  },
});
