/** The short form of `npm run cluster -- --check`: one round of each of the faults that are worst, but for those of `takeover`. */
import { expect, test } from "vitest";
import { DIST } from "../reliability/planted.js";
import { FAULTS } from "./check/faults/all.js";
import { check } from "./check/rounds.js";

const SEED = 1;
const NAMES = [
  "the leader is frozen for longer than its lease",
  "the leader is cut off from the primary",
  "waiting commits are ended, and the primary is lost with them",
  "an old primary that has diverged is attached without a rewind, and no other standby is there",
];
const chosen = FAULTS.filter(({ name }) => NAMES.includes(name));

test("a second machine takes over without loss or fork", async () => {
  expect(chosen).toHaveLength(NAMES.length);
  const report = await check({ seed: SEED, rounds: NAMES.length, dist: DIST, faults: chosen });
  expect(report.problems).toEqual([]);
  expect(report.rounds).toBe(NAMES.length);
  expect(report.acknowledged).toBeGreaterThan(10 * NAMES.length);
  expect(report.balanced.attestations).toBeGreaterThan(2 * NAMES.length);
  expect(report.balanced.rounds).toBeGreaterThan(NAMES.length);
  // A fault of the rounds may be over before another node leads. Three leaders are killed at the end: each leads in a new epoch.
  expect(report.epochs).toBeGreaterThan(3);
});
