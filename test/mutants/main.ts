/** `npm run mutants`: plants small faults in the build, one at a time, and reports those that no test notices. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { getPriority, setPriority } from "node:os";
import { dirname, join } from "node:path";
import { readArguments, refuse, wholeNumber } from "../reliability/command.js";
import { DIST } from "../reliability/planted.js";
import { readAccepted, staleEntries } from "./accepted.js";
import { Coverage } from "./coverage.js";
import { builtFiles, type Chosen, type Mutant, mutantOf, mutantsOf, sample } from "./generate.js";
import { describeMutant, isOpen, openVerdicts, scoreLine, scores } from "./report.js";
import { runMutants, type Verdict } from "./run.js";
import { Sandbox } from "./sandbox.js";
import { testItself } from "./selftest.js";

const help = `npm run mutants -- [OPTIONS] [FILE OR FOLDER...]

Plants small faults, "mutants", in copies of the build, one at a time, and runs the tests that execute the place. A mutant
that every test passes has survived: nothing would notice that fault. Each run measures first which test executes what,
as far as that is not known yet.

Options:
  --changed      The files that differ from --base, besides those that are named.
  --base REV     What --changed compares with; default HEAD.
  --sample N     N mutants of each file or folder, chosen at random.
  --seed S       Chooses others; default 1.
  --kind KIND    Only faults of this kind, such as drop-await or swap-order; can be repeated.
  --only ID      This mutant alone, and which test kills it.
  --again FILE   Those that were not killed in the run that wrote FILE with --json.
  --planted FILE Faults chosen by hand: a JSON list of {"id", "built", "from", "to"}, texts of the build.
  --tests PATH   Only tests below PATH; can be repeated. Default all that are fast enough.
  --budget S     Seconds that the tests of one mutant may take where nothing is wrong; default 60. Slower ones are left out.
  --workers N    Mutants at a time; default 1.
  --list         Prints the mutants, and runs none.
  --measure      Measures which test executes what, and runs none.
  --self-test    Shows, in a small project of its own, that mutants are found wherever they run.
  --json FILE    Writes every verdict.

Exit code: 0 nothing survived, 1 something did, 2 the command line or the list of accepted mutants is wrong.

Examples:
  npm run mutants -- engine/verify server/http/gate.ts
  npm run mutants -- --sample 100 --seed 2 engine/registry
  npm run mutants -- --planted faults.json --json verdicts.json
  npm run mutants -- --only engine/log/tree/tree.ts:31:14:boundary`;

const { values: options, positionals } = readArguments(help, {
  changed: { type: "boolean" },
  base: { type: "string" },
  sample: { type: "string" },
  seed: { type: "string" },
  kind: { type: "string", multiple: true },
  only: { type: "string" },
  again: { type: "string" },
  planted: { type: "string" },
  tests: { type: "string", multiple: true },
  budget: { type: "string" },
  workers: { type: "string" },
  list: { type: "boolean" },
  measure: { type: "boolean" },
  "self-test": { type: "boolean" },
  json: { type: "string" },
});
const root = dirname(DIST);
const seed = wholeNumber("seed", options.seed, 1);
const count = wholeNumber("sample", options.sample, Number.POSITIVE_INFINITY);
const budgetMs = wholeNumber("budget", options.budget, 60) * 1000;
const workers = Math.max(1, wholeNumber("workers", options.workers, 1));

/** A lower priority than interactive work. */
const PRIORITY = 10;
const MEASUREMENTS = join(root, "node_modules", ".cache", "mutants", "coverage.json");
const ACCEPTED = join(root, "test", "mutants", "equivalent");

const stopped = new AbortController();
process.once("SIGINT", () => stopped.abort());

const lines = (text: string) => text.split("\n").filter(Boolean);
const git = (...words: string[]) => lines(execFileSync("git", words, { cwd: root, encoding: "utf8" }));

/** The mutants that were given by id; null for all mutants of a place. */
function named(): ReadonlySet<string> | null {
  if (options.only) return new Set([options.only]);
  if (!options.again) return null;
  const { verdicts } = JSON.parse(readFileSync(options.again, "utf8")) as { verdicts: Verdict[] };
  return new Set(verdicts.filter(isOpen).map(({ mutant }) => mutant.id));
}

/** The requested files, as source paths. */
function asked(ids: ReadonlySet<string> | null): string[] {
  const places = positionals.map((path) => path.replace(/^\.\//, "").replace(/\/$/, ""));
  places.push(...[...(ids ?? [])].map((id) => id.split(":")[0]!));
  if (options.changed) {
    const below = ["--", "engine", "server", "wasm"];
    const changed = [
      ...git("diff", "--name-only", "--diff-filter=d", options.base ?? "HEAD", ...below),
      ...git("ls-files", "--others", "--exclude-standard", ...below),
    ];
    places.push(...changed.filter((path) => path.endsWith(".ts") && builtOf(path).length > 0));
  }
  return [...new Set(places)];
}

function readPlanted(path: string): Mutant[] {
  const list = JSON.parse(readFileSync(path, "utf8")) as Chosen[];
  return list.map((fault) => mutantOf(DIST, fault));
}

function builtOf(path: string): string[] {
  try {
    return builtFiles(DIST, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return [];
  }
}

function chosen(folders: readonly string[], ids: ReadonlySet<string> | null): Mutant[] {
  const all = folders.flatMap((folder) => {
    const built = builtOf(folder);
    if (!built.length) refuse(`There is no code to plant faults in at ${folder}.`);
    const mutants = built
      .flatMap((file) => mutantsOf(DIST, file))
      .filter(({ kind }) => options.kind?.includes(kind) ?? true);
    return ids ? mutants.filter(({ id }) => ids.has(id)) : sample(mutants, count, seed);
  });
  for (const id of ids ?? [])
    if (!all.some((mutant) => mutant.id === id))
      console.error(`There is no mutant ${id}; --list prints those there are.`);
  return [...new Map(all.map((mutant) => [mutant.id, mutant])).values()];
}

/** Measures the coverage that is not known yet for these compiled files; nearby test files first. */
async function measure(coverage: Coverage, tests: readonly string[], targets: readonly string[]): Promise<void> {
  const areas = new Set(targets.map((built) => dirname(built).split("/").at(-1)!));
  const isNear = (test: string) => (test.split("/").some((part) => areas.has(part)) ? 0 : 1);
  const missing = coverage.unmeasured(tests, targets).sort((a, b) => isNear(a) - isNear(b));
  if (!missing.length) return;
  const sandbox = new Sandbox(root);
  try {
    for (const [i, test] of missing.entries()) {
      if (stopped.signal.aborted) return;
      const measured = await coverage.measure(test, sandbox, stopped.signal);
      if (!measured) return;
      const took = `${(measured.ms / 1000).toFixed(1)} s${measured.fails ? `, fails without any fault: ${measured.fails}` : ""}`;
      console.error(`measured ${i + 1} of ${missing.length}: ${test}, ${took}`);
    }
  } finally {
    sandbox.remove();
  }
}

async function main(): Promise<number> {
  // Root could otherwise raise its priority if it was started with a still lower one.
  setPriority(Math.max(getPriority(), PRIORITY));
  if (options["self-test"]) return testItself(root);
  const accepted = readAccepted(ACCEPTED);
  const stale = staleEntries(accepted, DIST);
  for (const sentence of stale) console.error(sentence);
  if (stale.length) return 2;

  const byHand = options.planted ? readPlanted(options.planted) : null;
  const ids = named();
  const folders = byHand ? [...new Set(byHand.map(({ file }) => file))] : asked(ids);
  if (!folders.length && !options.measure) refuse("Name a file or folder, or use --changed.");
  const mutants = byHand ?? chosen(folders, ids);
  if (options.list) {
    for (const mutant of mutants) console.log(describeMutant(mutant));
    console.log(`${mutants.length} mutants`);
    return 0;
  }

  const coverage = new Coverage(root, MEASUREMENTS);
  const tests = coverage.tests(options.tests ?? ["test"]);
  const targets = folders.length
    ? [...new Set(mutants.map(({ built }) => built))]
    : ["engine", "server", "wasm"].flatMap(builtOf);
  await measure(coverage, tests, targets);
  for (const test of tests)
    if (coverage.failure(test)) console.error(`${test} is left out: it fails without any fault.`);
  if (options.measure) return 0;

  const verdicts: Verdict[] = [];
  await runMutants(mutants, {
    root,
    coverage,
    tests,
    accepted: options.only || byHand ? [] : accepted,
    workers,
    budgetMs,
    signal: stopped.signal,
    known(verdict) {
      verdicts.push(verdict);
      const by = verdict.by ? `  ${verdict.by.split("\n")[0]}` : "";
      console.error(`${verdicts.length} of ${mutants.length}: ${verdict.state} ${verdict.mutant.id}${by}`);
    },
  });
  if (stopped.signal.aborted) console.log(`Interrupted: ${verdicts.length} of ${mutants.length} mutants are known.`);
  for (const text of openVerdicts(verdicts)) console.log(text);
  const summary = scores(verdicts, folders);
  for (const score of summary) console.log(scoreLine(score));
  if (options.json) writeFileSync(options.json, `${JSON.stringify({ seed, summary, verdicts }, null, 2)}\n`);
  return verdicts.some(isOpen) ? 1 : 0;
}

process.exitCode = await main();
