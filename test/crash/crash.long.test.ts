/** The short form of `npm run crash`: a few kills, and the injected failures. */
import { expect, test } from "vitest";
import { DIST } from "../reliability/planted.js";
import { FAULT_CASES, loadEngine } from "./faults/faults.js";
import { LIMIT_CASES } from "./limits.js";
import { crash } from "./rounds.js";

const ROUNDS = 4;
const SEED = 1;

test(`${ROUNDS} rounds of SIGKILL lose nothing and leave nothing half-written`, async () => {
  const report = await crash({ seed: SEED, rounds: ROUNDS, dist: DIST });
  expect(report.problems).toEqual([]);
  expect(report.acknowledged).toBeGreaterThan(ROUNDS);
});

/** A commit that fails is the first of its batches, or has some before it. */
const CASES = FAULT_CASES.filter(({ name }) => !name.endsWith(", after 1"));

test.each(CASES)("$name", async ({ run }) => {
  expect(await run(await loadEngine(DIST))).toEqual([]);
});

test.each(LIMIT_CASES)("$name", async ({ run }) => {
  expect(await run(DIST)).toEqual([]);
});
