import { defineConfig } from "vitest/config";
import { inProjects, longestFirst, OVER_NODE_HTTP, TESTS } from "./vitest.config.js";

const LONG = { testTimeout: 900_000, hookTimeout: 300_000, exclude: [] };

/** Files that take half a minute and more. */
const FIRST = [
  "store/damage/damage",
  "server/mixing/mixing",
  "server/replication/takeover",
  "steps/steps",
  "client/every-member",
  "crash/crash",
  "powerloss/powerloss",
  "backup/restorememory",
  "cluster/check",
  "cli/attest",
  "journal/postgres/conformance",
  "crypto/signer/pkcs11",
  "faults/faults",
  "after/after",
  "deploy",
  "server/life/parent",
  "server/life/owners",
  "server/life/hanging",
  "monitor/exit-codes",
];

/**
 * Configuration for `npm run test:long`: tests that take minutes, start many commands, or depend on chance, such as kills
 * under load, fuzzing, and all pairs of sizes of a tree; and tests of HTTP once more over `node:http`.
 */
export default defineConfig({
  test: {
    ...TESTS,
    sequence: { sequencer: longestFirst(FIRST) },
    projects: [
      ...inProjects({ ...TESTS, ...LONG, include: ["test/**/*.long.test.ts"] }),
      { test: { ...TESTS, ...LONG, ...OVER_NODE_HTTP } },
    ],
  },
});
