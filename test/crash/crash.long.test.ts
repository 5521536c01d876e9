/** The short form of `npm run crash`: a few kills, and every injected failure once. */
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

test.each(FAULT_CASES)("$name", async ({ run }) => {
  expect(await run(await loadEngine(DIST))).toEqual([]);
});

test.each(LIMIT_CASES)("$name", async ({ run }) => {
  expect(await run(DIST)).toEqual([]);
});
