import { defineConfig } from "vitest/config";

/** Configuration for `npm run test:browser`, which needs a Chromium and is separate from `npm test`. */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/browser/**/*.browser.test.ts"],
    pool: "forks",
    // To load the compiled code and the driver takes seconds, so a process runs several files.
    isolate: false,
    setupFiles: ["test/setup.ts"],
    // These end what hangs. A machine that is busy with other things must not reach them.
    expect: { requireAssertions: true, poll: { timeout: 90_000 } },
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Each has a Chromium of its own. Pages wait for their next look at the service for most of the time.
    maxWorkers: 4,
    // A thread of front ends at each start would take a second from them; pages are the same without.
    env: { SERVICE_FRONT_ENDS: "0" },
    server: { deps: { external: [/\/dist\//] } },
  },
});
