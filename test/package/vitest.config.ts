import { defineConfig } from "vitest/config";

/** Configuration for `npm run test:package`, which needs the npm registry and is separate from `npm test`. */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/package/**/*.test.ts"],
    pool: "forks",
    globalSetup: "test/package/packed.ts",
    expect: { requireAssertions: true, poll: { timeout: 60_000 } },
    // These end what hangs. A machine that is busy with other things must not reach them.
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
