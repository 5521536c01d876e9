import { availableParallelism } from "node:os";
import { relative } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const root = new URL("..", import.meta.url).pathname;

/**
 * What takes longest. The size of a file, by which vitest goes on a fresh checkout, says nothing of that: a short file that
 * takes minutes would come last and leave every core but one idle.
 */
const LONGEST = [
  "crash/crash",
  "verify/merkle",
  "cli/attest",
  "cli/client",
  "backup/backup",
  "monitor/command",
  "cli/claim",
  "contract/signatures",
  "fsck/refusals",
  "fsck/fsck",
  "server/conditions",
  "cli/secrets",
  "fuzz/fuzz",
  "crash/webhooks",
  "docs",
  "wasm/extend",
  "log/import",
  "cli/commands",
].map((name) => `test/${name}.test.ts`);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.indexOf(relative(root, moduleId));
      return at < 0 ? LONGEST.length : at;
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}

export default defineConfig({
  test: {
    root,
    include: ["test/**/*.test.ts"],
    // These need the registry and a browser, which `npm test` does without.
    exclude: ["test/package/**", "test/browser/**"],
    // Native addons and worker threads do not survive being loaded in vitest's own threads.
    pool: "forks",
    // Many tests wait, for a child process or a disk; vitest would leave one of two cores idle.
    maxWorkers: Math.max(2, availableParallelism()),
    sequence: { sequencer: LongestFirst },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // What is tested is what ships: the compiled files, loaded by Node itself.
    server: { deps: { external: [/\/dist\//] } },
  },
});
