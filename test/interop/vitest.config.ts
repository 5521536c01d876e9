import { defineConfig } from "vitest/config";

/** Configuration for `npm run test:interop`: programs of other makers against a live service. They come from npm and Debian. */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/interop/**/*.test.ts"],
    pool: "forks",
    // These end what hangs. A machine that is busy with other things must not reach them.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { requireAssertions: true, poll: { timeout: 60_000 } },
    server: { deps: { external: [/\/dist\//] } },
  },
});
