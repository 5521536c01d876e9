/** How a sandbox runs its tests: one file after the other, in the order that `MUTANTS_ORDER` gives. */
import { relative } from "node:path";
import { defineConfig, mergeConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import tests from "../vitest.config.js";

const root = new URL("../..", import.meta.url).pathname;
const order = (process.env.MUTANTS_ORDER ?? "").split(",");

class InOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => order.indexOf(relative(root, moduleId));
    return [...files].sort((a, b) => place(a) - place(b));
  }
}

export default mergeConfig(
  tests,
  defineConfig({
    test: {
      sequence: { sequencer: InOrder },
      fileParallelism: false,
      setupFiles: [new URL("takecoverage.ts", import.meta.url).pathname],
    },
  }),
);
