/** For each mutant, runs the tests that execute its place, and records the verdict. */
import { basename, dirname } from "node:path";
import { type Accepted, accepts } from "./accepted.js";
import type { Coverage } from "./coverage.js";
import type { Mutant } from "./generate.js";
import { Sandbox } from "./sandbox.js";

export type State =
  /** A test failed. */
  | "killed"
  /** The tests did not end within a multiple of their usual time. */
  | "timeout"
  /** Every test passed. */
  | "survived"
  /** No test executes the place. */
  | "uncovered"
  /** Accepted with a reason. */
  | "accepted";

export interface Verdict {
  readonly mutant: Mutant;
  readonly state: State;
  /** The test that failed, or the reason for which the mutant is accepted. */
  readonly by: string | null;
  /** The test files that were run with it. */
  readonly shown: readonly string[];
  /** Number of slower test files that execute its place and were not run. */
  readonly left: number;
}

export interface Plan {
  readonly root: string;
  readonly coverage: Coverage;
  /** Test files that may be run. */
  readonly tests: readonly string[];
  readonly accepted: readonly Accepted[];
  readonly workers: number;
  /** Maximum duration of all tests for one mutant, measured without a fault. */
  readonly budgetMs: number;
  readonly signal: AbortSignal;
  /** Called with each new verdict. */
  readonly known: (verdict: Verdict) => void;
}

const TIMEOUT_FLOOR_MS = 6_000;
const TIMEOUT_FACTOR = 4;

/** Runs the mutants. Those without a verdict when `signal` is aborted stay without one. */
export async function runMutants(mutants: readonly Mutant[], plan: Plan): Promise<void> {
  const waiting = [...mutants];
  const kills = new Map<string, number>();
  const work = async () => {
    const sandbox = new Sandbox(plan.root);
    try {
      for (let mutant = waiting.shift(); mutant && !plan.signal.aborted; mutant = waiting.shift()) {
        const verdict = await judge(mutant, sandbox, plan, kills);
        if (!plan.signal.aborted) plan.known(verdict);
      }
    } finally {
      sandbox.remove();
    }
  };
  await Promise.all(Array.from({ length: Math.min(plan.workers, mutants.length) }, work));
}

async function judge(mutant: Mutant, sandbox: Sandbox, plan: Plan, kills: Map<string, number>): Promise<Verdict> {
  const entry = plan.accepted.find((accepted) => accepts(accepted, mutant));
  if (entry) return { mutant, state: "accepted", by: entry.reason, shown: [], left: 0 };
  const covering = inOrder(mutant, plan, kills);
  if (!covering.length) return { mutant, state: "uncovered", by: null, shown: [], left: 0 };

  let total = 0;
  const shown = covering.filter((test, i) => {
    const ms = plan.coverage.ms(test);
    if (i > 0 && total + ms > plan.budgetMs) return false;
    total += ms;
    return true;
  });
  const timeoutMs = TIMEOUT_FLOOR_MS + TIMEOUT_FACTOR * total;
  const { outcome, by } = await sandbox.with(mutant, () => sandbox.test(shown, { timeoutMs, signal: plan.signal }));
  const state = outcome === "passed" ? "survived" : outcome === "failed" ? "killed" : "timeout";
  const killer = by?.split(": ")[0];
  if (state === "killed" && killer) {
    const key = `${mutant.file} ${killer}`;
    kills.set(key, (kills.get(key) ?? 0) + 1);
  }
  return { mutant, state, by, shown, left: covering.length - shown.length };
}

/**
 * The order of the tests: first those that killed other mutants of the file, then those that import it, then those with
 * its name and of its area, and then by their time.
 */
function inOrder(mutant: Mutant, { coverage, tests }: Plan, kills: ReadonlyMap<string, number>): string[] {
  const area = basename(dirname(mutant.file));
  const name = basename(mutant.file, ".ts");
  const nearness = (test: string) =>
    (coverage.imports(test, mutant.built) ? 4 : 0) +
    (basename(test, ".test.ts") === name ? 2 : 0) +
    (test.split("/").includes(area) ? 1 : 0);
  return coverage
    .covering(mutant, tests)
    .map((test) => ({
      test,
      kills: kills.get(`${mutant.file} ${test}`) ?? 0,
      nearness: nearness(test),
      ms: coverage.ms(test),
    }))
    .sort((a, b) => b.kills - a.kills || b.nearness - a.nearness || a.ms - b.ms)
    .map(({ test }) => test);
}
