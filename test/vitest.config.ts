import { availableParallelism } from "node:os";
import { defineConfig, type TestProjectConfiguration, type TestUserConfig } from "vitest/config";
import { BaseSequencer, type TestSequencerConstructor, type TestSpecification } from "vitest/node";

/** How all tests run that load the compiled code. */
export const TESTS = {
  root: new URL("..", import.meta.url).pathname,
  include: ["test/**/*.test.ts"],
  // The packed package and the tools of other makers need the registry, and the explorer a browser; `npm test` does not.
  exclude: ["test/**/*.long.test.ts", "test/package/**", "test/openapi/**", "test/interop/**", "test/browser/**"],
  // Native addons and worker threads do not survive being loaded in vitest's own threads.
  pool: "forks",
  // To load the compiled code takes longer than to run most files, so a process runs many of them (test/setup.ts).
  isolate: false,
  // What one test puts in the place of a timer must not be the timer of the next file.
  unstubGlobals: true,
  setupFiles: ["test/setup.ts"],
  // Many tests wait, for a child process or a disk: with a worker for each core, two cores were busy for 80 % of the time.
  maxWorkers: availableParallelism() + 2,
  // These end what hangs. A machine that is busy with other things must not reach them.
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // A test that asserts nothing passes whatever the code does.
  expect: { requireAssertions: true, poll: { timeout: 60_000 } },
  // The tests run the files that ship: the compiled ones, loaded by Node itself.
  server: { deps: { external: [/\/dist\//] } },
} satisfies TestUserConfig;

/** What the HTTP library decides, over `node:http`: how requests are read, bounds, aborts, slow clients, limits. */
export const OVER_NODE_HTTP = {
  name: "node:http",
  include: [
    "test/contract/service/{framing,health,hostile,limits}.test.ts",
    "test/server/http/answers.test.ts",
    "test/server/http/bounds.long.test.ts",
    "test/server/life/shutdown.long.test.ts",
  ],
  env: { SERVICE_TRANSPORT: "node", SERVICE_FRONT_ENDS: "" },
} satisfies TestUserConfig;

/** What decides how requests are served; these tests have front ends, as users have. One of them calls every operation. */
const OF_SERVING = ["test/contract/service/**", "test/contract/log/**", "test/server/**"];

/**
 * `tests` in two projects. A front end is a thread that loads the code for itself, which is half of the CPU of a start, so
 * tests of what is behind HTTP have a service without one. Every project names each variable that one of them names,
 * because a process may run files of all of them.
 */
export function inProjects(
  tests: TestUserConfig & { include: string[]; exclude: string[] },
): TestProjectConfiguration[] {
  const { SERVICE_TRANSPORT = "", SERVICE_FRONT_ENDS = "" } = process.env;
  const env = { SERVICE_TRANSPORT, SERVICE_FRONT_ENDS };
  const suffix = tests.include[0]!.replace("test/**/*", "");
  const ofServing = OF_SERVING.map((folder) => `${folder}/*${suffix}`);
  const behind = { ...env, SERVICE_FRONT_ENDS: SERVICE_FRONT_ENDS || "0" };
  return [
    { test: { ...tests, name: "serving", include: ofServing, env } },
    { test: { ...tests, name: "behind it", exclude: [...tests.exclude, ...ofServing], env: behind } },
  ];
}

/** Runs the files of these names first: what begins last has the machine for itself, and should be short. */
export const longestFirst = (names: readonly string[]): TestSequencerConstructor =>
  class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      const isLong = ({ moduleId }: TestSpecification) => names.some((name) => moduleId.includes(`/test/${name}.`));
      const sorted = await super.sort(files);
      return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
    }
  };

/** Files that take ten seconds and more. */
const LONG = [
  "contract/service/framing",
  "server/mixing/mixing",
  "log/write/budgets",
  "contract/log/tlog",
  "contract/service/openapi",
  "client/areas",
  "contract/identity/accounts",
  "contract/service/pages",
  "contract/log/anchoring",
  "server/replication/role",
  "contract/identity/signatures",
  "verify/tree/merkle",
  "webhooks/deliverer",
];

/**
 * Configuration for `npm test`: all tests that are deterministic and short. Files `*.long.test.ts` are for `npm run
 * test:long`.
 */
export default defineConfig({
  test: { ...TESTS, sequence: { sequencer: longestFirst(LONG) }, projects: inProjects(TESTS) },
});
