/** When a leader counts as gone, and what a node may say of its settings. */
import { expect, test, vi } from "vitest";
import type { Lead } from "#cairnlog/engine/journal/postgres/statements.js";
import { Observation } from "#cairnlog/server/replication/role.js";
import { checkSettings } from "#cairnlog/server/replication/settings.js";

const LEAD = { epoch: 1, holder: "a", sequence: 5, beat: 9 } as Lead;

test("only looks that all see the same count, and every sign of life begins anew", () => {
  vi.useFakeTimers();
  const observation = new Observation();
  observation.see(LEAD);
  vi.advanceTimersByTime(1_000);
  observation.see(LEAD);
  expect(observation.unchangedMs).toBe(1_000);
  for (const change of [{ beat: 10 }, { sequence: 6 }, { epoch: 2 }, { holder: null }]) {
    observation.see({ ...LEAD, ...change });
    expect(observation.unchangedMs).toBe(0);
    vi.advanceTimersByTime(700);
    expect(observation.unchangedMs).toBe(700);
  }
  vi.useRealTimers();
});

test("settings that differ are named, with both values", () => {
  const meta = { format: 4, key_id: "k", created_at: "t", settings: { SERVICE_A: "1", SERVICE_B: "" } };
  expect(() => checkSettings(undefined, {})).not.toThrow();
  expect(() => checkSettings(meta, { SERVICE_A: "1", SERVICE_B: "" })).not.toThrow();
  expect(() => checkSettings(meta, { SERVICE_A: "2", SERVICE_B: "x" })).toThrow(
    'SERVICE_A is "1" there and "2" here; SERVICE_B is not set there and "x" here',
  );
});
