import { defineConfig } from "vitest/config";

/** Configuration for `npm run test:browser`, which needs a Chromium and is separate from `npm test`. */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/browser/**/*.browser.test.ts"],
    pool: "forks",
    expect: { requireAssertions: true },
    // Each has a Chromium of its own, which takes most of a core.
    maxWorkers: 2,
    // A thread of front ends at each start would take a second from them; pages are the same without.
    env: { SERVICE_FRONT_ENDS: "0" },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    server: { deps: { external: [/\/dist\//] } },
  },
});
