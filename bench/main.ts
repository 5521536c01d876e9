/**
 * `npm run bench -- [suite ...] [--json FILE]`: runs the suites, in the order given.
 */
import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { describeMachine, machineHeader } from "./machine.js";
import type { Suite, SuiteOptions } from "./suite.js";

/**
 * Loaded when needed: a peer that cannot be loaded here stops only its own suite, and no suite uses memory of another.
 */
const suites: Readonly<Record<string, () => Promise<{ suite: Suite }>>> = {
  hash: () => import("./hash/hash.js"),
  append: () => import("./engine/append.js"),
  signer: () => import("./engine/signer.js"),
  proofs: () => import("./engine/proofs.js"),
  front: () => import("./front/front.js"),
  strangers: () => import("./strangers/strangers.js"),
  tails: () => import("./tails/tails.js"),
  peers: () => import("./peers/peers.js"),
  http: () => import("./http/http.js"),
  verify: () => import("./engine/verify.js"),
  growth: () => import("./engine/growth.js"),
  tlog: () => import("./engine/tlog.js"),
  memory: () => import("./engine/memory.js"),
  queries: () => import("./engine/queries.js"),
  scale: () => import("./scale/scale.js"),
  graph: () => import("./engine/graph.js"),
  trust: () => import("./engine/trust.js"),
  explorer: () => import("./explorer.js"),
};

async function help(): Promise<string> {
  const lines = Object.entries(suites).map(
    async ([name, load]) => `  ${name.padEnd(9)} ${(await load()).suite.summary}`,
  );
  return `Usage: npm run bench -- [suite ...] [options]

Without a suite, all of them run. Every figure stands beside a floor or a peer measured in the same run, and is the
median of its rounds with the lowest and highest in brackets.

Suites:
${(await Promise.all(lines)).join("\n")}

Options:
  --json FILE  also write the results to FILE
  --entries N  size of the log of growth, tlog, front and tails (1000000, which takes minutes) and of scale (3000000,
               half an hour, 12 GB); at least 100000
  --rounds N   rounds of front, strangers, peers and scale (7), tlog (25) and tails (3); for a machine that is busy
  --only TEXT  tails only measures beside what has TEXT in its name, scale only searches, proofs or restores
  --short      tails and scale take half a minute, and show that everything in them runs; their figures mean nothing
  --profile    tails says which functions took the longest turns; this costs time itself
  --against D  front only compares attestations with those of D, the folder of another built checkout
  --help       show this

npm run load -- --help is about loading a whole service over HTTP.
`;
}

/** Ends the process as a wrong command line should. */
async function refuse(message: string): Promise<never> {
  console.error(`${message}\n\n${await help()}`);
  process.exit(2);
}

async function readCommandLine() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        json: { type: "string" },
        entries: { type: "string" },
        rounds: { type: "string" },
        against: { type: "string" },
        only: { type: "string" },
        short: { type: "boolean" },
        profile: { type: "boolean" },
        help: { type: "boolean" },
      },
    });
  } catch (error) {
    return refuse((error as Error).message);
  }
}

const { values, positionals } = await readCommandLine();

/** The number of an option, if it is given. */
async function readNumber(name: "entries" | "rounds", atLeast: number): Promise<SuiteOptions> {
  const text = values[name];
  if (text === undefined) return {};
  const value = Number(text);
  if (!(Number.isSafeInteger(value) && value >= atLeast))
    return refuse(`--${name} takes a whole number, at least ${atLeast}.`);
  return { [name]: value };
}

if (values.help) {
  console.log(await help());
} else {
  const names = positionals.length > 0 ? positionals : Object.keys(suites);
  for (const name of names) if (!Object.hasOwn(suites, name)) await refuse(`There is no suite "${name}".`);
  const options: SuiteOptions = {
    ...(await readNumber("entries", 100_000)),
    ...(await readNumber("rounds", 1)),
    ...(values.against === undefined ? {} : { against: values.against }),
    ...(values.only === undefined ? {} : { only: values.only }),
    ...(values.short ? { short: true } : {}),
    ...(values.profile ? { profile: true } : {}),
  };

  const machine = describeMachine();
  console.log(machineHeader(machine));
  const results: Record<string, unknown> = {};
  for (const name of names) {
    const { suite } = await suites[name]!();
    results[name] = await suite.run(options);
  }
  // The load average before and after, because suites cause some of it themselves.
  const loadAverageAtEnd = loadavg();
  if (values.json !== undefined)
    writeFileSync(values.json, `${JSON.stringify({ machine, loadAverageAtEnd, results }, null, 2)}\n`);
}
