import { defineConfig } from "vitest/config";

/** Configuration for `npm run test:openapi`, whose tools of other makers are in a package.json of its own. */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/openapi/**/*.test.ts"],
    pool: "forks",
    expect: { requireAssertions: true, poll: { timeout: 60_000 } },
    // These end what hangs. A machine that is busy with other things must not reach them.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    server: { deps: { external: [/\/dist\//] } },
  },
});
