/** The short form of `npm run faults`: one case of each kind of end, and what a disk does that fills up or breaks. */
import { expect, test } from "vitest";
import { DIST } from "../reliability/planted.js";
import { faults, withStage } from "./faults.js";
import type { Case } from "./plan.js";

const SEED = 1;

/** Of each the earliest case: phase, call, path, error. */
const KINDS = [
  "create fsync@node log/data.mdb EIO",
  "create fdatasync@lmdb log/data.mdb EIO",
  "start open@node published.json EIO",
  "start mkdir@node log EDQUOT",
  "start pwrite64@lmdb log/erasing/data.mdb EIO",
  "start rename@node log/data.mdb EIO",
  "load fdatasync@lmdb log/data.mdb EIO",
  "load pwrite64@lmdb log/data.mdb EIO",
  "load writev@lmdb log/data.mdb short",
  "load statfs64@node log EIO",
  "load * * ENOSPC",
  "end fdatasync@lmdb log/data.mdb EIO",
  "stop write@node published.json.new ENOSPC",
];

const kindOf = ({ phase, call, path, error }: Case): string => [phase, call, path, error].join(" ");

test("a system call that fails loses nothing, and nothing false is said", async () => {
  const chosen = (cases: readonly Case[]) => {
    // The earliest call of a kind: how many there are in all, and so whether the last is reached, depends on the load.
    const earliest = cases.toSorted((one, other) => one.nth - other.nth);
    const found = KINDS.map((kind) => [kind, earliest.find((one) => kindOf(one) === kind)] as const);
    // A call that the service no longer makes is to be replaced in the list.
    expect(found.filter(([, one]) => !one).map(([kind]) => kind)).toEqual([]);
    return found.flatMap(([, one]) => one ?? []);
  };
  const report = await withStage((stage) => faults(stage, { seed: SEED, rounds: 0, dist: DIST, chosen }));
  expect(report.problems).toEqual([]);
  expect(report.rounds).toBe(KINDS.length);
  expect(report.outcomes["not reached"] ?? 0).toBeLessThan(3);
  expect(report.outcomes["exit code 74"]).toBeGreaterThan(0);
  expect(report.outcomes["did not start"]).toBeGreaterThan(0);
});
