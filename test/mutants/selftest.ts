/**
 * A project of a few lines with mutants of every verdict, in every kind of process that runs code. A runner that
 * misjudges one of them cannot be trusted.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Coverage } from "./coverage.js";
import type { Mutant } from "./generate.js";
import { runMutants, type State } from "./run.js";
import { Sandbox } from "./sandbox.js";

const FILES: Readonly<Record<string, string>> = {
  "package.json": JSON.stringify({ type: "module", imports: { "#cairnlog/*": "./dist/*" } }),
  "dist/small.js": `import { Worker } from "node:worker_threads";
export const larger = (a, b) => (a > b ? a : b);
export const noticed = (n) => n + 1;
export const unnoticed = (n) => n + 2;
export const notCalled = (n) => n + 3;
export function count(end) { let i = 0; while (i < end) i += 4; return i; }
export const inThread = () => new Promise((resolve) => new Worker(new URL("thread.js", import.meta.url)).on("message", resolve));
`,
  "dist/thread.js": `import { parentPort } from "node:worker_threads";
parentPort.postMessage(5 + 1);
`,
  "dist/command.js": `console.log(6 + 1);
`,
  "test/small.test.ts": `import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { count, inThread, noticed, unnoticed } from "#cairnlog/small.js";

test("imported", () => {
  expect(noticed(1)).toBe(2);
  expect(typeof unnoticed(1)).toBe("number");
  expect(count(8)).toBe(8);
});
test("in a worker thread", async () => expect(await inThread()).toBe(6));
test("in a child process", () => {
  const command = fileURLToPath(import.meta.resolve("#cairnlog/command.js"));
  expect(execFileSync(process.execPath, [command], { encoding: "utf8" })).toBe("7\\n");
});
`,
  "test/broken.test.ts": `import { expect, test } from "vitest";
import { unnoticed } from "#cairnlog/small.js";

test("fails for any code", () => expect(unnoticed(1)).toBe(0));
`,
};

/** Text of the compiled code, its replacement, and the expected verdict. */
const EXPECTED: readonly [built: string, original: string, replacement: string, state: State][] = [
  ["small.js", "n + 1", "n - 1", "killed"],
  ["small.js", "n + 2", "n - 2", "survived"],
  ["small.js", "n + 3", "n - 3", "uncovered"],
  ["small.js", "i += 4", "i -= 4", "timeout"],
  ["thread.js", "5 + 1", "5 - 1", "killed"],
  ["command.js", "6 + 1", "6 - 1", "killed"],
];

/** @param root the checkout, whose vitest and settings are used. @returns exit code */
export async function testItself(root: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "cairnlog-mutants-self-"));
  try {
    for (const [name, text] of Object.entries(FILES)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    for (const name of ["vitest.config.ts", "setup.ts", "mutants/vitest.config.ts", "mutants/takecoverage.ts"].map(
      (path) => `test/${path}`,
    )) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      cpSync(join(root, name), join(folder, name));
    }
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const wrong = await misjudged(folder);
    for (const sentence of wrong) console.log(`WRONG  ${sentence}`);
    console.log(wrong.length ? `${wrong.length} verdicts are wrong` : "every verdict is right");
    return wrong.length ? 1 : 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function misjudged(folder: string): Promise<string[]> {
  const { signal } = new AbortController();
  const coverage = new Coverage(folder, join(folder, "coverage.json"));
  const tests = coverage.tests(["test"]);
  const built = [...new Set(EXPECTED.map(([file]) => file))];
  const sandbox = new Sandbox(folder);
  for (const test of coverage.unmeasured(tests, built)) await coverage.measure(test, sandbox, signal);
  sandbox.remove();

  const wrong: string[] = [];
  const failure = coverage.failure("test/small.test.ts");
  if (failure) wrong.push(`a test that passes is left out: ${failure}`);
  if (!coverage.failure("test/broken.test.ts")) wrong.push("a test that fails without any fault is used");
  if (coverage.unmeasured(["test/small.test.ts"], built).length) wrong.push("what was measured is measured again");
  const mutants = EXPECTED.map(([file, original, replacement]): Mutant => {
    const start = FILES[`dist/${file}`]!.indexOf(original);
    const place = { file, built: file, line: 1, column: 1, source: original, nth: 1 };
    return { id: original, kind: "arithmetic", start, end: start + original.length, original, replacement, ...place };
  });
  const expected = new Map(EXPECTED.map(([, original, , state]) => [original, state]));
  await runMutants(mutants, {
    root: folder,
    coverage,
    tests,
    accepted: [],
    workers: 1,
    budgetMs: 60_000,
    signal,
    known({ mutant, state, by }) {
      const right = expected.get(mutant.original);
      console.log(`${mutant.built}: ${mutant.original} → ${mutant.replacement}: ${state}${by ? ` by ${by}` : ""}`);
      if (state !== right) wrong.push(`${mutant.built}: ${mutant.original} must be ${right}, not ${state}`);
    },
  });
  return wrong;
}
