/** When a leader counts as gone, and what a node may say of its settings. */
import { expect, test, vi } from "vitest";
import type { Lead } from "#cairnlog/engine/journal/postgres/statements.js";
import { Observation } from "#cairnlog/server/replication/role.js";
import { bindingSettings, checkSettings, VKEY } from "#cairnlog/server/replication/settings.js";
import { completeSettings } from "#cairnlog/server/settings/settings.js";
import { TABLE } from "#cairnlog/server/settings/settingtable.js";

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

/** Another value for each setting that all nodes share; and the way it is shown. */
const OTHER = {
  predicateBase: "https://other.example/p",
  endorsementActivationDelaySeconds: 7,
  endorsementBaseCapacity: 7,
  endorsementMinTrust: 0.7,
  trustAnchors: [`sha256:${"a".repeat(64)}`],
  logName: "other.example",
  tlogOrigin: "other.example/tlog",
} as const;

test("a node may not join with another value of what all share; what a log shares is named, with both values", () => {
  const own = (more: object = {}, vkey: string | null = "own+key") =>
    bindingSettings(completeSettings({ dataDir: "/x", ...more }), vkey);
  const meta = (settings: Readonly<Record<string, string>>) => ({ format: 4, key_id: "k", created_at: "t", settings });
  const joins = (there: Readonly<Record<string, string>>, here: Readonly<Record<string, string>>) => {
    try {
      checkSettings(meta(there), here);
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(() => checkSettings(undefined, own())).not.toThrow();
  expect(Object.keys(own())).toEqual([...Object.keys(OTHER).map((key) => TABLE[key as keyof typeof OTHER].name), VKEY]);
  for (const [key, value] of Object.entries(OTHER)) {
    const { name } = TABLE[key as keyof typeof OTHER];
    const [here, there] = [own(), own({ [key]: value })];
    expect(joins(there, there)).toBe(null);
    const shown = (text: string | undefined) => (text ? JSON.stringify(text) : "not set");
    expect(joins(there, here)).toContain(`: ${name} is ${shown(there[name])} there and ${shown(here[name])} here. `);
    expect(joins(here, there)).toContain(`: ${name} is ${shown(here[name])} there and ${shown(there[name])} here. `);
  }
  // A node without a key signs nothing. One with another key would sign what nobody knows.
  expect(joins(own(), own({}, null))).toBe(null);
  expect(joins(own(), own({}, "other+key"))).toContain(`: ${VKEY} is "own+key" there and "other+key" here. `);
  const both = joins(own(), own({ logName: "b.example", tlogOrigin: "c.example" }));
  expect(both).toContain(
    'SERVICE_LOG_NAME is not set there and "b.example" here; SERVICE_TLOG_ORIGIN is not set there and',
  );
});
