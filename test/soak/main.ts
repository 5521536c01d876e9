/** `npm run soak`: steady load for half an hour; memory and descriptors must not grow. */
import { writeFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { startProgress } from "#cairnlog/server/cli/terminal/progress.js";
import { draw, type Panel } from "../../bench/load/svg.js";
import { anySeed, readCommand, wholeNumber } from "../reliability/command.js";
import type { Sample } from "./drift.js";
import { type SoakReport, soak } from "./soak.js";

const help = `npm run soak -- [OPTIONS]

Measures how many requests a second the service takes, sends 70 % of that: a mixed load over all routes that write, and
attestations by 20,000 signers and reads in volume. Strangers have registered what they may, 5,000 subscriptions among it,
whose receivers fail, hang, are slow or work. Beside that the log is verified, exported and searched, readers in other processes
are killed, and no line of the service's log can be written. Restarts the service now and then, and fails if memory, descriptors
or the bytes that the file grows by for a request rise between restarts, or if a stop is late. Needs Linux, for /proc.

Options:
  --minutes N    How long; default 30.
  --seconds N    The same in seconds, for trials.
  --restarts N   How often; default 3. With 0, what fills slowly has all of the time to fill.
  --seed N       Repeats the choices of an earlier run.
  --json FILE    Writes the samples.
  --svg FILE     Draws them.

Exit code: 0 nothing was found, 1 something was, 2 the command line is not understood.

Examples:
  npm run soak -- --json soak.json --svg docs/soak.svg
  npm run soak -- --seconds 120`;

const options = readCommand(help, {
  minutes: { type: "string" },
  seconds: { type: "string" },
  restarts: { type: "string" },
  seed: { type: "string" },
  json: { type: "string" },
  svg: { type: "string" },
});
const seconds = wholeNumber("seconds", options.seconds, wholeNumber("minutes", options.minutes, 30) * 60);
const restarts = wholeNumber("restarts", options.restarts, 3);
const seed = wholeNumber("seed", options.seed, anySeed());
const stopped = new AbortController();
process.once("SIGINT", () => stopped.abort());

function picture({ samples, capacity, requests, restarts }: SoakReport): string {
  const series = (name: string, of: (sample: Sample) => number) => ({
    name,
    points: samples.map((sample) => ({ x: sample.at / 60, y: of(sample) })),
  });
  const panels: Panel[] = [
    {
      title: "Resident memory, MiB",
      series: [
        series("own", (sample) => sample.ownMemory / 2 ** 20),
        series("with the mapped file", ({ rss }) => rss / 2 ** 20),
      ],
    },
    { title: "Descriptors", series: [series("open", ({ descriptors }) => descriptors)] },
    { title: "Requests a second", series: [series("answered", ({ perSecond }) => perSecond)] },
    {
      title: "Latency of the mixed load, ms",
      logarithmic: true,
      series: [series("p50", ({ p50 }) => p50), series("p99", ({ p99 }) => p99)],
    },
    { title: "Data on disk, MiB", series: [series("data.mdb", ({ disk }) => disk / 2 ** 20)] },
  ];
  const load = `${requests} requests at 70 % of ${capacity.toFixed(0)} a second, ${restarts} restarts`;
  const machine = `${cpus()[0]?.model ?? "unknown"}, ${availableParallelism()} CPUs, Node ${process.version}`;
  return draw({
    title: "Steady load: all routes that write, and attestations and reads in volume",
    notes: [load, machine],
    xLabel: "minutes",
    panels,
  });
}

async function main(): Promise<number> {
  console.log(`seed ${seed}`);
  const bar = startProgress("soak", seconds, (amount) => `${Math.floor(amount)} s`);
  const report = await soak({ seed, seconds, restarts, signal: stopped.signal, progress: (done) => bar.update(done) });
  bar.end();
  const { samples, capacity, requests, problems } = report;
  const last = samples.at(-1);
  console.log(
    `${requests} requests at 70 % of ${capacity.toFixed(0)} a second, ${report.restarts} restarts; at the end ` +
      `${((last?.ownMemory ?? 0) / 2 ** 20).toFixed(0)} MiB of memory, ${last?.descriptors} descriptors; ${problems.length} problems`,
  );
  for (const problem of problems) console.error(problem);
  if (options.json) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
  if (options.svg) writeFileSync(options.svg, picture(report));
  return problems.length ? 1 : 0;
}

process.exit(await main());
