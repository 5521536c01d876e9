/**
 * The process that runs a sandbox's tests: `node host.js FOLDER`. It stays alive between runs, because starting vitest
 * takes longer than most test files. The tests themselves run in new processes each time, and load the current `dist`.
 */
import { join } from "node:path";
import { createVitest, type Reporter, type TestModule } from "vitest/node";

/** A request of the parent. */
export interface Request {
  /** Paths below the sandbox, in this order. The first failure ends the run. */
  readonly files: readonly string[];
  /** Folder to which every process of the run writes its coverage. */
  readonly coverage: string | null;
}

export interface Answer {
  /** The first failed test, or another error; null if every test passed. */
  readonly failed: string | null;
  /** Whether that test only took too long. */
  readonly isLate: boolean;
}

const folder = process.argv[2]!;
let failed: string | null = null;
let isLate = false;

const reporter: Reporter = {
  onTestCaseResult(test) {
    const { state, errors } = test.result();
    if (state !== "failed" || failed !== null) return;
    failed = `${test.module.relativeModuleId}: ${test.fullName}`;
    isLate = /timed out|did not succeed in time/.test(errors[0]?.message ?? "");
  },
  onTestRunEnd(modules, errors, reason) {
    if (reason !== "passed") failed ??= modules.map(fault).find((text) => text !== null) ?? "the run was interrupted";
    for (const error of errors) failed ??= `unhandled: ${error.message}`;
  },
};

const firstLine = (text: string) => text.split("\n")[0]!;

/** The reason why a file failed although none of its tests did, for example because it does not load. */
function fault(module: TestModule): string | null {
  const suites = [module, ...module.children.allSuites()];
  const error = suites.flatMap((suite) => suite.errors())[0];
  return error ? `${module.relativeModuleId}: ${firstLine(error.message)}` : null;
}

const vitest = await createVitest("test", {
  root: folder,
  config: join(folder, "test", "mutants", "vitest.config.ts"),
  watch: false,
  reporters: [reporter],
});
await vitest.standalone();

process.on("message", async ({ files, coverage }: Request) => {
  failed = null;
  isLate = false;
  if (coverage) process.env.NODE_V8_COVERAGE = coverage;
  else delete process.env.NODE_V8_COVERAGE;
  const specifications = files
    .map((file) => join(folder, file))
    .flatMap((path) =>
      vitest.projects.filter((one) => one.matchesTestGlob(path)).map((one) => one.createSpecification(path)),
    );
  await vitest.runTestSpecifications(specifications);
  process.send!({ failed, isLate } satisfies Answer);
});
process.send!("ready");
