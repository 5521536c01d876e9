import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    include: ["test/**/*.test.ts"],
    // These need the registry and a browser, which `npm test` does without.
    exclude: ["test/package/**", "test/browser/**"],
    // Native addons and worker threads do not survive being loaded in vitest's own threads.
    pool: "forks",
    // Many tests wait, for a child process or a disk; vitest would leave one of two cores idle.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // What is tested is what ships: the compiled files, loaded by Node itself.
    server: { deps: { external: [/\/dist\//] } },
  },
});
