import { defineConfig } from "vitest/config";
import { OVER_NODE_HTTP, TESTS } from "./vitest.config.js";

const LONG = { testTimeout: 900_000, hookTimeout: 300_000, exclude: [] };

/**
 * Configuration for `npm run test:long`: tests that take minutes, start many commands, or depend on chance, such as kills
 * under load, fuzzing, and all pairs of sizes of a tree; and tests of HTTP once more over `node:http`.
 */
export default defineConfig({
  test: {
    ...TESTS,
    projects: [
      // Named in both, since a process may run files of both.
      {
        test: {
          ...TESTS,
          ...LONG,
          name: "long",
          include: ["test/**/*.long.test.ts"],
          env: { SERVICE_TRANSPORT: process.env.SERVICE_TRANSPORT ?? "" },
        },
      },
      { test: { ...TESTS, ...LONG, ...OVER_NODE_HTTP } },
    ],
  },
});
