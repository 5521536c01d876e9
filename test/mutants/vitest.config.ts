/** Configuration for tests in a sandbox: one file after the other, in the given order. */
import { defineConfig, mergeConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { OVER_NODE_HTTP, TESTS } from "../vitest.config.js";

class AsGiven extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files;
  }
}

const root = new URL("../..", import.meta.url).pathname;

// Long tests too: the runner leaves out what takes more than its budget.
const ONE_BY_ONE = mergeConfig(
  { test: { ...TESTS, exclude: [] } },
  defineConfig({
    test: {
      sequence: { sequencer: AsGiven },
      fileParallelism: false,
      // Coverage is recorded by process.
      isolate: true,
      bail: 1,
      // The runner has its own limits, which do not count waiting on a busy machine.
      testTimeout: 0,
      hookTimeout: 0,
      // Emptied after each run.
      env: { TMPDIR: `${root}tmp` },
      setupFiles: [new URL("takecoverage.ts", import.meta.url).pathname],
    },
  }),
);

/** A file of both projects runs twice. */
export default defineConfig({
  test: {
    ...ONE_BY_ONE.test,
    projects: [
      { test: { ...ONE_BY_ONE.test, name: "all" } },
      { test: { ...ONE_BY_ONE.test, ...OVER_NODE_HTTP, env: { ...ONE_BY_ONE.test?.env, ...OVER_NODE_HTTP.env } } },
    ],
  },
});
