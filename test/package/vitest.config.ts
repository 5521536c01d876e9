import { defineConfig } from "vitest/config";

/** Needs the registry, for what the package depends on: `npm run test:package`, apart from `npm test`. */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/package/**/*.test.ts"],
    pool: "forks",
    testTimeout: 120_000,
    hookTimeout: 300_000,
  },
});
