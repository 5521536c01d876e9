/** `npm run faults`: system calls fail one by one; nothing acknowledged may be lost, and nothing false be said. */
import { writeFileSync } from "node:fs";
import { startProgress } from "#cairnlog/server/cli/terminal/progress.js";
import { anySeed, readCommand, wholeNumber } from "../reliability/command.js";
import { DIST, selfTest } from "../reliability/planted.js";
import { type FaultsReport, faults, withStage } from "./faults.js";
import { plantedCases, SYSTEM_FAULTS } from "./planted.js";

const help = `npm run faults -- [OPTIONS]

Makes one system call of the service fail in each round: while it makes a data directory, starts, works or stops. Then
checks that everybody was told the truth, that the process ended as it should if it had to, and that a clean start has
everything that was acknowledged and nothing that was refused. Needs a C compiler (Debian: gcc and libc6-dev).

Options:
  --rounds N         Rounds; default 200. 0: every case, some thousand.
  --seconds S        Starts no further round after so long.
  --seed N           Repeats the choices of an earlier run. What the clock has a say in differs all the same.
  --only CALL:ERROR  Only cases of this call and error, for example fdatasync:EIO, pwrite64@lmdb or :ENOSPC.
  --self-test        Plants faults in copies of the build, and fails unless every one of them is found.
  --json FILE        Writes the figures.

Exit code: 0 nothing was found, 1 something was, 2 the command line is not understood.

Examples:
  npm run faults
  npm run faults -- --only fdatasync:EIO --rounds 0
  npm run faults -- --seconds 600 --seed 4711 --json faults.json`;

const options = readCommand(help, {
  rounds: { type: "string" },
  seconds: { type: "string" },
  seed: { type: "string" },
  only: { type: "string" },
  "self-test": { type: "boolean" },
  json: { type: "string" },
});
const rounds = wholeNumber("rounds", options.rounds, 200) || Number.POSITIVE_INFINITY;
const seed = wholeNumber("seed", options.seed, anySeed());
const seconds = wholeNumber("seconds", options.seconds, 0);

const stopped = new AbortController();
process.once("SIGINT", () => stopped.abort());
if (seconds) setTimeout(() => stopped.abort(), seconds * 1000).unref();

async function testItself(): Promise<number> {
  const missed = await withStage((stage) =>
    selfTest(SYSTEM_FAULTS, async (dist, fault) => {
      const options = { seed, rounds: 0, dist, chosen: plantedCases(fault), endsEarly: true };
      return (await faults(stage, options)).problems;
    }),
  );
  return missed.length ? 1 : 0;
}

function print({ rounds, cases, acknowledged, outcomes, table, problems }: FaultsReport): void {
  for (const [name, row] of Object.entries(table).sort(([a], [b]) => (a < b ? -1 : 1)))
    console.log(`${name.padEnd(36)}${spell(row)}`);
  console.log(`${rounds} of ${cases} cases, ${acknowledged} acknowledged entries, ${problems.length} problems`);
  console.log(spell(outcomes));
}

const spell = (row: object): string =>
  Object.entries(row)
    .map(([outcome, count]) => `${outcome}: ${count}`)
    .join(", ");

async function main(): Promise<number> {
  console.log(`seed ${seed}`);
  if (options["self-test"]) return testItself();
  const shown = startProgress("rounds", Number.isFinite(rounds) ? rounds : null);
  const run = { seed, rounds, dist: DIST, only: options.only, signal: stopped.signal };
  const report = await withStage((stage) => faults(stage, { ...run, progress: (round) => shown.update(round) }));
  shown.end();
  print(report);
  for (const problem of report.problems) console.error(problem);
  if (report.problems.length) console.error(`again: npm run faults -- --seed ${seed}`);
  if (options.json) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
  return report.problems.length ? 1 : 0;
}

process.exit(await main());
