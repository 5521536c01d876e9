/**
 * Runs the tests of the contract on the other versions of Node that the package works on: `npm run test:nodes`. The
 * version that runs this script has `npm test`. `npx` takes the others from the npm registry.
 * Understands vitest's `--outputFile=FILE` after `--reporter=json`, and writes one report of all versions there.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const VERSIONS = [20, 22, 24, 26].filter((version) => version !== Number.parseInt(process.versions.node, 10));
/** What native addons, the HTTP parser and the language decide: every operation, framing, hostile input, all key kinds. */
const TESTS = [
  "test/contract/service/framing.test.ts",
  "test/contract/service/hostile.test.ts",
  "test/contract/service/openapi.test.ts",
  "test/contract/log/log.test.ts",
  "test/contract/identity/keys.test.ts",
  "test/contract/signing/attestations.test.ts",
  "test/server/http/answers.test.ts",
];
const root = new URL("..", import.meta.url).pathname;
const outputFile = process.argv.find((argument) => argument.startsWith("--outputFile="))?.split("=")[1];

/** The path of the program, because the package's own start script would stand between it and signals. */
function programOf(version) {
  const ask = ["--yes", `--package=node@${version}`, "--", "node", "--print", "process.execPath"];
  const options = { cwd: tmpdir(), encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] };
  return execFileSync("npx", ask, options).trim();
}

const folder = mkdtempSync(join(tmpdir(), "cairnlog-nodes-"));
const total = { numPassedTests: 0, numFailedTests: 0, testResults: [] };

/** What is printed, all of one version together. */
async function run(version) {
  const program = programOf(version);
  const report = join(folder, `${version}.json`);
  const how = ["--config", "test/vitest.config.ts", "--maxWorkers=1", "--reporter=default", "--reporter=json"];
  const child = spawn(program, ["node_modules/vitest/vitest.mjs", "run", ...how, `--outputFile=${report}`, ...TESTS], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const printed = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => printed.push(chunk));
  await once(child, "close");
  console.log(
    `== Node ${execFileSync(program, ["--version"], { encoding: "utf8" }).trim()}\n${Buffer.concat(printed)}`,
  );
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, "utf8"));
  total.numPassedTests += numPassedTests;
  total.numFailedTests += numFailedTests;
  total.testResults.push(...testResults);
}

// Many of these tests wait, so all versions at once take little longer than one.
await Promise.all(VERSIONS.map(run));
rmSync(folder, { recursive: true });
if (outputFile) writeFileSync(outputFile, JSON.stringify(total));
const isBroken = total.testResults.some(({ status }) => status === "failed");
process.exitCode = isBroken || !total.numPassedTests ? 1 : 0;
