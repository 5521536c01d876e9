/** `npm run fuzz`: sends wrong requests to a real service, and wrong texts to all parsers. */
import { writeFileSync } from "node:fs";
import { startProgress } from "#cairnlog/server/cli/terminal/progress.js";
import { anySeed, readCommand, wholeNumber } from "../reliability/command.js";
import { DIST, selfTest } from "../reliability/planted.js";
import { asInput, keep, readCorpus, SERVICE } from "./corpus.js";
import { fuzzParsers } from "./parsers.js";
import { PARSER_FAULTS, SERVICE_FAULTS } from "./planted.js";
import { fuzzService } from "./service.js";

const help = `npm run fuzz -- [OPTIONS]

Makes valid requests of every route from the service's own OpenAPI document and from its signers, changes them, and sends
them to a service that it starts: each must be answered as the document promises, never by a 500, and the log must verify
at the end. Then does the same to what reads keys, signatures, timestamps, notes, bundles, claims, policies.

Options:
  --seconds S    How long, half of it for each; default 120.
  --seed N       Makes the inputs of an earlier run again, in their order.
  --self-test    Plants faults in copies of the build, and fails unless every one of them is found.
  --json FILE    Writes the figures.

An input that fails is kept in test/fuzz/corpus, and sent first from then on, also by the tests.
Exit code: 0 nothing was found, 1 something was, 2 the command line is not understood.

Examples:
  npm run fuzz
  npm run fuzz -- --seconds 3600 --json fuzz.json
  npm run fuzz -- --seed 4711 --seconds 60`;

const options = readCommand(help, {
  seconds: { type: "string" },
  seed: { type: "string" },
  "self-test": { type: "boolean" },
  json: { type: "string" },
});
const seconds = wholeNumber("seconds", options.seconds, 120) / 2;
const seed = wholeNumber("seed", options.seed, anySeed());
const stopped = new AbortController();
process.once("SIGINT", () => stopped.abort());

/** Seconds in which a planted fault must be found. Most are found in the first. */
const SELF_TEST_SECONDS = 45;
/** Seconds for each fault in a parser. A busy machine once did not find one in 45 s. The run ends with the first finding. */
const PARSER_SECONDS = 180;

/** Shows progress in seconds, because the number of inputs is not known. */
function watch<T>(label: string, run: (progress: () => void) => Promise<T>): Promise<T> {
  const started = Date.now();
  const bar = startProgress(label, seconds, (amount) => `${Math.floor(amount)} s`);
  return run(() => bar.update((Date.now() - started) / 1000)).finally(() => bar.end());
}

async function testItself(): Promise<number> {
  const inService = await selfTest(SERVICE_FAULTS, async (dist) =>
    (await fuzzService({ seed, seconds: SELF_TEST_SECONDS, dist })).findings.map(({ problem }) => problem),
  );
  const inParsers = await selfTest(PARSER_FAULTS, async (dist) =>
    (await fuzzParsers({ seed, seconds: PARSER_SECONDS, dist })).findings.map(({ problem }) => problem),
  );
  return inService.length + inParsers.length ? 1 : 0;
}

async function main(): Promise<number> {
  console.log(`seed ${seed}`);
  if (options["self-test"]) return testItself();
  const common = { seed, seconds, dist: DIST, signal: stopped.signal };
  const corpus = readCorpus().filter(({ target }) => target === SERVICE);
  const service = await watch("service", (progress) =>
    fuzzService({ ...common, corpus: corpus.map(asInput), progress }),
  );
  const statuses = Object.entries(service.statuses).map(([status, count]) => `${status}: ${count}`);
  console.log(
    `service: ${service.inputs} requests (${statuses.join(", ")}), ${service.reached.size} operations reached with success, ${service.unreached.length} not`,
  );
  if (service.heldMs) console.log(`held the event loop, alone: ${service.heldMs.toFixed(0)} ms at most`);
  for (const name of service.unreached) console.error(`never answered with success: ${name}`);
  for (const { problem, input } of service.findings) {
    console.error(problem);
    if (!input) continue;
    const { body, ...request } = input;
    const kept = { note: problem.slice(0, 200), target: SERVICE, request, bytes: body?.toString("base64") ?? null };
    console.error(`kept: ${keep(`service-${seed}-${service.inputs}`, kept)}`);
  }
  const parsers = await watch("parsers", (progress) => fuzzParsers({ ...common, progress }));
  console.log(`parsers: ${parsers.inputs} inputs for ${parsers.targets} readers`);
  for (const { problem, target, input } of parsers.findings) {
    console.error(problem);
    const kept = { note: problem.slice(0, 200), target, bytes: input.toString("base64") };
    console.error(`kept: ${keep(`parser-${seed}-${parsers.inputs}`, kept)}`);
  }
  const { reached, ...figures } = service;
  const report = { seed, seconds: 2 * seconds, service: { ...figures, reached: [...reached].sort() }, parsers };
  if (options.json) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
  const found = service.findings.length + service.unreached.length + parsers.findings.length;
  if (found) console.error(`again: npm run fuzz -- --seed ${seed} --seconds ${2 * seconds}`);
  return found ? 1 : 0;
}

process.exit(await main());
