/**
 * The end of a limit by address: whole seconds, rounded up, so that a client that waits this long is not refused again.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS, type LimitName, Limits, limitHeaders } from "#cairnlog/server/http/limits.js";

const START = Date.parse("2025-01-01T00:00:00Z");
const CLIENT = "192.0.2.1";
const each = (requests: number) =>
  Object.fromEntries(Object.keys(LIMITS).map((name) => [name, requests])) as Record<LimitName, number>;

let now = START;
beforeEach(() => {
  now = START;
  vi.spyOn(Date, "now").mockImplementation(() => now);
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe.each(Object.entries(LIMITS) as [LimitName, { seconds: number }][])("%s", (name, { seconds }) => {
  test.each([
    [0, seconds],
    [1, seconds],
    [999, seconds],
    [1_000, seconds - 1],
    [1_001, seconds - 1],
    [seconds * 1_000 - 1_001, 2],
    [seconds * 1_000 - 1_000, 1],
    [seconds * 1_000 - 1, 1],
  ])("%d ms after the first request there are %d s left", async (passed, reset) => {
    const limits = new Limits(each(1));
    expect(await limits.count(name, CLIENT)).toMatchObject({ remaining: 0, reset: seconds, exceeded: false });
    now += passed;
    expect(await limits.count(name, CLIENT)).toMatchObject({ remaining: 0, reset, exceeded: true });
    expect(await limits.look(name, CLIENT)).toMatchObject({ remaining: 0, reset, exceeded: false });
  });

  test("after exactly the window the client has all of its requests again", async () => {
    const limits = new Limits(each(2));
    for (const exceeded of [false, false, true])
      expect(await limits.count(name, CLIENT)).toMatchObject({ exceeded, limit: 2, window: seconds });
    now += seconds * 1_000;
    expect(await limits.look(name, CLIENT)).toMatchObject({ remaining: 2, reset: seconds });
    expect(await limits.count(name, CLIENT)).toMatchObject({ remaining: 1, reset: seconds, exceeded: false });
  });

  test("the waiting time never exceeds the window, even if the clock is set back", async () => {
    const limits = new Limits(each(1));
    await limits.count(name, CLIENT);
    now -= 86_400_000;
    expect(await limits.count(name, CLIENT)).toMatchObject({ reset: seconds, exceeded: true });
    expect((await limits.look(name, CLIENT)).reset).toBe(seconds);
  });
});

test("the headers give limit, remainder and seconds, each in both forms", () => {
  const standing = { name: "general", limit: 7, window: 60, remaining: 3, reset: 42, exceeded: false } as const;
  const fields = limitHeaders(standing);
  const pairs = fields.flatMap((field, i) => (i % 2 ? [] : [[field, fields[i + 1]]]));
  expect(Object.fromEntries(pairs)).toEqual({
    "ratelimit-policy": '"general";q=7;w=60',
    ratelimit: '"general";r=3;t=42',
    "ratelimit-limit": "7",
    "ratelimit-remaining": "3",
    "ratelimit-reset": "42",
  });
});
