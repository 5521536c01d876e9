/** `npm run crash`: repeated SIGKILL, and a failure at every boundary. No acknowledged change may be lost. */
import { writeFileSync } from "node:fs";
import { startProgress } from "#cairnlog/server/cli/terminal/progress.js";
import { anySeed, readCommand, wholeNumber } from "../reliability/command.js";
import { DIST, selfTest } from "../reliability/planted.js";
import { FAULT_CASES, loadEngine } from "./faults/faults.js";
import { answered } from "./faults/faultylog.js";
import { LIMIT_CASES } from "./limits.js";
import { CRASH_FAULTS, ENGINE_FAULTS } from "./planted.js";
import { type CrashReport, crash } from "./rounds.js";

const help = `npm run crash -- [OPTIONS]

Injects a failure at every boundary of the log, then kills the service under mixed load, round after round in one data
directory, and checks after each that everything that was acknowledged is there and nothing half of it.

Options:
  --rounds N     Kills; default 200. 0: faults only.
  --seconds S    Starts no further round after so long.
  --seed N       Repeats the choices of an earlier run. What the clock has a say in differs all the same.
  --no-faults    Kills only.
  --self-test    Plants faults in copies of the build, and fails unless every one of them is found.
  --json FILE    Writes the figures.

Exit code: 0 nothing was found, 1 something was, 2 the command line is not understood.

Examples:
  npm run crash
  npm run crash -- --rounds 20 --seed 4711 --json crash.json
  npm run crash -- --self-test`;

const options = readCommand(help, {
  rounds: { type: "string" },
  seconds: { type: "string" },
  seed: { type: "string" },
  "no-faults": { type: "boolean" },
  "self-test": { type: "boolean" },
  json: { type: "string" },
});
const rounds = wholeNumber("rounds", options.rounds, 200);
const seed = wholeNumber("seed", options.seed, anySeed());
const seconds = wholeNumber("seconds", options.seconds, 0);

const stopped = new AbortController();
process.once("SIGINT", () => stopped.abort());
if (seconds) setTimeout(() => stopped.abort(), seconds * 1000).unref();

/** Number of rounds in which a planted fault must be found. Most are found in the first two. */
const SELF_TEST_ROUNDS = 40;

/** Milliseconds for a case. It takes a second or two where nothing else runs. */
const CASE_MS = 180_000;

/** What a case found. That it fails or never ends is a finding, too. */
async function findings(name: string, run: () => Promise<readonly string[]>): Promise<string[]> {
  const problems = await answered("the end of the case", run(), CASE_MS).catch((error: unknown) => [String(error)]);
  return problems.map((problem) => `${name}: ${problem}`);
}

async function runFaults(dist: string): Promise<string[]> {
  const problems: string[] = [];
  const engine = await loadEngine(dist);
  const cases = [
    ...FAULT_CASES.map(({ name, run }) => ({ name, run: () => run(engine) })),
    ...LIMIT_CASES.map(({ name, run }) => ({ name, run: () => run(dist) })),
  ];
  const progress = startProgress("faults", cases.length);
  for (const [i, { name, run }] of cases.entries()) {
    if (stopped.signal.aborted) break;
    progress.update(i);
    problems.push(...(await findings(name, run)));
  }
  progress.end();
  console.log(`${cases.length} faults injected, ${problems.length} problems`);
  return problems;
}

async function runRounds(dist: string): Promise<CrashReport> {
  const progress = startProgress("rounds", rounds);
  const report = await crash({
    seed,
    rounds,
    dist,
    signal: stopped.signal,
    progress: (round) => progress.update(round),
  });
  progress.end();
  const { killed, entries, acknowledged, requests, delivered, problems } = report;
  console.log(
    `${report.rounds} kills (${Object.entries(killed)
      .map(([moment, count]) => `${count} ${moment}`)
      .join(", ")}): ` +
      `${requests} requests, ${acknowledged} acknowledged entries of ${entries}, ${delivered} deliveries, ` +
      `${problems.length} problems`,
  );
  return report;
}

async function testItself(): Promise<number> {
  const inRounds = await selfTest(CRASH_FAULTS, async (dist) => {
    const { problems } = await crash({ seed, rounds: SELF_TEST_ROUNDS, dist });
    return problems;
  });
  const inFaults = await selfTest(ENGINE_FAULTS, async (dist) => {
    const engine = await loadEngine(dist);
    for (const { name, run } of FAULT_CASES) {
      const problems = await findings(name, () => run(engine));
      if (problems.length) return problems;
    }
    return [];
  });
  return inRounds.length + inFaults.length ? 1 : 0;
}

async function main(): Promise<number> {
  console.log(`seed ${seed}`);
  if (options["self-test"]) return testItself();
  const problems = options["no-faults"] ? [] : await runFaults(DIST);
  const report = rounds ? await runRounds(DIST) : null;
  problems.push(...(report?.problems ?? []));
  for (const problem of problems) console.error(problem);
  if (problems.length) console.error(`again: npm run crash -- --seed ${seed} --rounds ${rounds}`);
  const faults = options["no-faults"] ? 0 : FAULT_CASES.length + LIMIT_CASES.length;
  if (options.json) writeFileSync(options.json, `${JSON.stringify({ seed, faults, problems, report }, null, 2)}\n`);
  return problems.length ? 1 : 0;
}

process.exit(await main());
