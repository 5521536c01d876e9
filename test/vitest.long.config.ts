import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { inProjects, OVER_NODE_HTTP, TESTS } from "./vitest.config.js";

const LONG = { testTimeout: 900_000, hookTimeout: 300_000, exclude: [] };

/** Files that take half a minute and more. What begins last has the machine for itself, and should be short. */
const FIRST = [
  "store/damage/damage",
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
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => FIRST.some((name) => moduleId.includes(`/test/${name}.`));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/**
 * Configuration for `npm run test:long`: tests that take minutes, start many commands, or depend on chance, such as kills
 * under load, fuzzing, and all pairs of sizes of a tree; and tests of HTTP once more over `node:http`.
 */
export default defineConfig({
  test: {
    ...TESTS,
    // These wait more than others: for programs that they start, for the disk, for limits of a minute.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: LongestFirst },
    projects: [
      ...inProjects({ ...TESTS, ...LONG, include: ["test/**/*.long.test.ts"] }),
      { test: { ...TESTS, ...LONG, ...OVER_NODE_HTTP } },
    ],
  },
});
