/** `npm run cluster`: three PostgreSQL servers and two nodes of one log, to try, or to be checked under faults. */
import { writeFileSync } from "node:fs";
import { startProgress } from "#cairnlog/server/cli/terminal/progress.js";
import { anySeed, readCommand, refuse, wholeNumber } from "../reliability/command.js";
import { DIST, selfTest } from "../reliability/planted.js";
import { FAULTS } from "./check/faults/all.js";
import { CLUSTER_FAULTS } from "./check/planted.js";
import { type CheckReport, check } from "./check/rounds.js";
import { demo } from "./demo.js";
import { measure, printMeasured } from "./measure.js";

const help = `npm run cluster -- [OPTIONS]

Starts three PostgreSQL servers (a primary and two standbys) and two nodes of one log on this machine, and says what to
try. A node that is killed is started again; if the primary is killed, a standby takes over. Ctrl-C ends and deletes
everything. Needs PostgreSQL 15 or newer (Debian: postgresql).

With --check, it is rather tested: rounds of load through both nodes while nodes, servers and the ways between them are
killed, frozen, cut off and promoted. After each round, every receipt, both nodes and PostgreSQL are compared.

Options:
  --port N      Port of the first node; the second has the next. Default 8081.
  --check       Runs rounds of faults.
  --rounds N    Number of them; default 200.
  --seconds S   Starts no further round after so long.
  --seed N      Repeats the choices of an earlier run. What the clock has a say in differs all the same.
  --only TEXT   Only faults whose name has this text.
  --list        Lists the faults.
  --measure     Rather measures: how long nobody can append when leaders and primaries are killed (--rounds times
                each; 10 by default), how late a follower is, and what an append costs.
  --self-test   Plants faults in copies of the build, and fails unless every one of them is found.
  --json FILE   Writes the figures.

Exit code: 0 nothing was found, 1 something was, 2 the command line is not understood.

Examples:
  npm run cluster
  npm run cluster -- --check --rounds 20 --seed 4711 --json cluster.json
  npm run cluster -- --check --only "standby promoted" --rounds 5
  npm run cluster -- --self-test`;

const options = readCommand(help, {
  port: { type: "string" },
  check: { type: "boolean" },
  rounds: { type: "string" },
  seconds: { type: "string" },
  seed: { type: "string" },
  only: { type: "string" },
  list: { type: "boolean" },
  measure: { type: "boolean" },
  "self-test": { type: "boolean" },
  json: { type: "string" },
});
const rounds = wholeNumber("rounds", options.rounds, 200);
const seed = wholeNumber("seed", options.seed, anySeed());
const seconds = wholeNumber("seconds", options.seconds, 0);
const port = wholeNumber("port", options.port, 8081);
const chosen = FAULTS.filter(({ name }) => name.includes(options.only ?? ""));
if (!chosen.length) refuse(`--only: no fault has the text ${options.only}; --list shows them`);

const stopped = new AbortController();
// The second time at once; what was started is killed by handlers of `exit`.
for (const name of ["SIGINT", "SIGTERM"] as const)
  process.on(name, () => (stopped.signal.aborted ? process.exit(130) : stopped.abort()));
if (seconds) setTimeout(() => stopped.abort(), seconds * 1000).unref();

async function runRounds(): Promise<number> {
  console.log(`seed ${seed}`);
  const shown = startProgress("rounds", rounds);
  const run = { seed, rounds, dist: DIST, faults: chosen, signal: stopped.signal };
  const report = await check({ ...run, progress: (round) => shown.update(round) });
  shown.end();
  print(report);
  for (const problem of report.problems) console.error(problem);
  if (report.problems.length) console.error(`again: npm run cluster -- --check --seed ${seed} --rounds ${rounds}`);
  if (options.json) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
  return report.problems.length ? 1 : 0;
}

function print(report: CheckReport): void {
  for (const [name, gap] of Object.entries(report.gaps).sort(([, a], [, b]) => b - a))
    console.log(`${String(gap).padStart(6)} ms without an append: ${name}`);
  const answers = Object.entries(report.answers).map(([kind, count]) => `${count} ${kind}`);
  console.log(`answers: ${answers.join(", ")}`);
  const { attestations, rounds: watched } = report.balanced;
  console.log(`through a balancer: ${attestations} attestations, ${watched} rounds of a monitor`);
  console.log(
    `${report.rounds} rounds in ${report.seconds} s, ${report.acknowledged} acknowledged attestations, ` +
      `${report.records} records in ${report.epochs} epochs, ${report.refused} refused, ${report.problems.length} problems`,
  );
}

async function runMeasurement(): Promise<number> {
  const measured = await measure(options.rounds ? rounds : 10, seed);
  printMeasured(measured);
  if (options.json) writeFileSync(options.json, `${JSON.stringify(measured, null, 2)}\n`);
  return 0;
}

async function testItself(): Promise<number> {
  const missed = await selfTest(CLUSTER_FAULTS, async (dist, fault) => {
    const { shows, rounds } = CLUSTER_FAULTS.find(({ name }) => name === fault.name)!;
    return (await check({ seed, rounds, dist, faults: FAULTS.filter(({ name }) => shows.includes(name)) })).problems;
  });
  return missed.length ? 1 : 0;
}

if (options.list) for (const { name } of FAULTS) console.log(name);
else if (options["self-test"]) process.exit(await testItself());
else if (options.measure) process.exit(await runMeasurement());
else if (options.check) process.exit(await runRounds());
else await demo(port, stopped.signal);
