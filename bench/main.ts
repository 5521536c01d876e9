/**
 * `npm run bench -- [suite ...] [--json FILE]`: runs the suites, in the order given.
 */
import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { describeMachine, machineHeader } from "./machine.js";
import type { Suite } from "./suite.js";

/**
 * Loaded when needed: a peer that cannot be loaded here stops only its own suite, and no suite uses memory of another.
 */
const suites: Readonly<Record<string, () => Promise<{ suite: Suite }>>> = {
  hash: () => import("./hash/hash.js"),
  append: () => import("./engine/append.js"),
  signer: () => import("./engine/signer.js"),
  proofs: () => import("./engine/proofs.js"),
  http: () => import("./http/http.js"),
  verify: () => import("./engine/verify.js"),
  growth: () => import("./engine/growth.js"),
  memory: () => import("./engine/memory.js"),
  queries: () => import("./engine/queries.js"),
  graph: () => import("./engine/graph.js"),
  explorer: () => import("./explorer.js"),
};

async function help(): Promise<string> {
  const lines = Object.entries(suites).map(
    async ([name, load]) => `  ${name.padEnd(8)} ${(await load()).suite.summary}`,
  );
  return `Usage: npm run bench -- [suite ...] [--json FILE] [--entries N]

Without a suite, all of them run. Every figure stands beside a floor or a peer measured in the same run, and is the
median of its rounds with the lowest and highest in brackets.

Suites:
${(await Promise.all(lines)).join("\n")}

Options:
  --json FILE  also write the results to FILE
  --entries N  size of the large log of growth, at least 100000 (1000000, which takes minutes)
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
      options: { json: { type: "string" }, entries: { type: "string" }, help: { type: "boolean" } },
    });
  } catch (error) {
    return refuse((error as Error).message);
  }
}

const { values, positionals } = await readCommandLine();
if (values.help) {
  console.log(await help());
} else {
  const names = positionals.length > 0 ? positionals : Object.keys(suites);
  for (const name of names) if (!Object.hasOwn(suites, name)) await refuse(`There is no suite "${name}".`);
  const entries = values.entries === undefined ? undefined : Number(values.entries);
  if (entries !== undefined && !(Number.isSafeInteger(entries) && entries >= 100_000))
    await refuse("--entries takes a whole number, at least 100000.");

  const machine = describeMachine();
  console.log(machineHeader(machine));
  const results: Record<string, unknown> = {};
  for (const name of names) {
    const { suite } = await suites[name]!();
    results[name] = await suite.run(entries === undefined ? {} : { entries });
  }
  // The load average before and after, because suites cause some of it themselves.
  const loadAverageAtEnd = loadavg();
  if (values.json !== undefined)
    writeFileSync(values.json, `${JSON.stringify({ machine, loadAverageAtEnd, results }, null, 2)}\n`);
}
