/** `npm run powerloss`: whatever a power failure leaves of the disk, nothing acknowledged may be lost. */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { startProgress } from "#cairnlog/server/cli/terminal/progress.js";
import { anySeed, readCommand, wholeNumber } from "../reliability/command.js";
import { DIST, selfTest } from "../reliability/planted.js";
import { POWERLOSS_FAULTS, type PowerlossFault } from "./planted.js";
import { type PowerlossReport, powerloss } from "./powerloss.js";

const help = `npm run powerloss -- [OPTIONS]

Records every change of a file, every flush and every answer of the service and of commands, then makes states of the disk
as a power failure at any moment may leave them: what was flushed, and any part of what was not. Each state must open and
verify, with everything that a client had been told before that moment.

It needs Linux and a C compiler (Debian: gcc and libc6-dev).

Options:
  --states N     States; default 2000.
  --requests N   Requests to the service in the longest run that is recorded; default 150.
  --seed N       Repeats the choices of an earlier run. What the clock has a say in differs all the same.
  --keep DIR     Where failing states are kept, each with its trace; default powerloss-failed.
  --self-test    Plants faults in copies of the build, and fails unless every one of them is found.
  --json FILE    Writes the figures.

Exit code: 0 nothing was found, 1 something was, 2 the command line is not understood.

Examples:
  npm run powerloss
  npm run powerloss -- --states 200 --seed 4711 --json powerloss.json
  npm run powerloss -- --self-test`;

/** Enough for each planted fault. */
const SELF_TEST_REQUESTS = 30;

const options = readCommand(help, {
  states: { type: "string" },
  requests: { type: "string" },
  seed: { type: "string" },
  keep: { type: "string", default: "powerloss-failed" },
  "self-test": { type: "boolean" },
  json: { type: "string" },
});
const states = wholeNumber("states", options.states, 2_000);
const requests = wholeNumber("requests", options.requests, 150);
const seed = wholeNumber("seed", options.seed, anySeed());

const stopped = new AbortController();
process.once("SIGINT", () => stopped.abort());

async function run(): Promise<PowerlossReport> {
  const progress = startProgress("states", states);
  const report = await powerloss({
    seed,
    states,
    requests,
    dist: DIST,
    keep: resolve(options.keep),
    signal: stopped.signal,
    progress: (done) => progress.update(done),
  });
  progress.end();
  console.log(
    `${report.states} states (${Object.entries(report.recordings)
      .map(([name, { states, events }]) => `${states} of ${name} with ${events} events`)
      .join(", ")}): ${report.opened} opened; ` +
      `${report.receipts} receipts, ${report.heads} heads and ${report.rows} rows compared, ` +
      `${report.problems.length} problems`,
  );
  return report;
}

async function testItself(): Promise<number> {
  const missed = await selfTest(POWERLOSS_FAULTS, async (dist, fault) => {
    const { only } = fault as PowerlossFault;
    const options = { seed, states, requests: SELF_TEST_REQUESTS, only, dist, keep: null, stopsEarly: true };
    return (await powerloss({ ...options, signal: stopped.signal })).problems;
  });
  return missed.length ? 1 : 0;
}

async function main(): Promise<number> {
  console.log(`seed ${seed}`);
  if (options["self-test"]) return testItself();
  const report = await run();
  for (const problem of report.problems) console.error(problem);
  if (report.problems.length) console.error(`again: npm run powerloss -- --seed ${seed} --states ${states}`);
  if (options.json) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
  return report.problems.length ? 1 : 0;
}

process.exit(await main());
