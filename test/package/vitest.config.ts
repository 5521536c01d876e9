import { defineConfig } from "vitest/config";

/** Configuration for `npm run test:package`, which needs the npm registry and is separate from `npm test`. */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/package/**/*.test.ts"],
    pool: "forks",
    expect: { requireAssertions: true },
    testTimeout: 120_000,
    hookTimeout: 300_000,
  },
});
