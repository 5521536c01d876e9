/** The short form of `npm run powerloss`. */
import { expect, test } from "vitest";
import { DIST } from "../reliability/planted.js";
import { powerloss } from "./powerloss.js";

const STATES = 50;
const REQUESTS = 60;

test(`${STATES} states after a power failure open with all that was acknowledged`, async () => {
  const report = await powerloss({ seed: 1, states: STATES, requests: REQUESTS, dist: DIST, keep: null });
  expect(report.problems).toEqual([]);
  expect(report.opened).toBe(STATES);
  expect(report.receipts).toBeGreaterThan(STATES);
});
