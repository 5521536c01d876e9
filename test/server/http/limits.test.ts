/**
 * Limits by address. They end in whole seconds, rounded up, so that a client that waits this long is not refused again.
 * All threads count in the same memory.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS, type LimitName, Limits, limitHeaders } from "#cairnlog/server/http/limits/limits.js";
import { heldMemory } from "../../held-memory.js";

/** Milliseconds of the clock that nobody can set. */
const START = 86_400_000;
const CLIENT = "192.0.2.1";
const each = (requests: number) =>
  Object.fromEntries(Object.keys(LIMITS).map((name) => [name, requests])) as Record<LimitName, number>;

const NAMES = Object.keys(LIMITS) as LimitName[];

let now = START;
beforeEach(() => {
  now = START;
  vi.spyOn(process.hrtime, "bigint").mockImplementation(() => BigInt(now) * 1_000_000n);
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
  ])("%d ms after the first request there are %d s left", (passed, reset) => {
    const limits = Limits.create(each(1));
    expect(limits.count(name, CLIENT)).toMatchObject({ remaining: 0, reset: seconds, exceeded: false });
    now += passed;
    expect(limits.count(name, CLIENT)).toMatchObject({ remaining: 0, reset, exceeded: true });
    expect(limits.look(name, CLIENT)).toMatchObject({ remaining: 0, reset, exceeded: false });
  });

  test("after exactly the window the client has all of its requests again", () => {
    const limits = Limits.create(each(2));
    for (const exceeded of [false, false, true])
      expect(limits.count(name, CLIENT)).toMatchObject({ exceeded, limit: 2, window: seconds });
    now += seconds * 1_000;
    expect(limits.look(name, CLIENT)).toMatchObject({ remaining: 2, reset: seconds });
    expect(limits.count(name, CLIENT)).toMatchObject({ remaining: 1, reset: seconds, exceeded: false });
  });

  test("the waiting time never exceeds the window, even if another thread has read the clock later", () => {
    const limits = Limits.create(each(1));
    limits.count(name, CLIENT);
    now -= 1_000;
    expect(limits.count(name, CLIENT)).toMatchObject({ reset: seconds, exceeded: true });
    expect(limits.look(name, CLIENT).reset).toBe(seconds);
  });

  test("the date may be set: no window gets longer or shorter", () => {
    const limits = Limits.create(each(1));
    const date = vi.spyOn(Date, "now").mockReturnValue(Date.parse("2025-01-01T00:00:00Z"));
    limits.count(name, CLIENT);
    now += seconds * 1_000 - 1;
    date.mockReturnValue(Date.parse("2026-01-01T00:00:00Z"));
    expect(limits.count(name, CLIENT).exceeded).toBe(true);
    now += 1;
    date.mockReturnValue(Date.parse("2024-01-01T00:00:00Z"));
    expect(limits.count(name, CLIENT).exceeded).toBe(false);
  });
});

test("each limit counts for itself, and each address", () => {
  const limits = Limits.create(each(2));
  for (const name of NAMES) {
    limits.count(name, CLIENT);
    expect(NAMES.map((other) => limits.look(other, CLIENT).remaining)).toEqual(
      NAMES.map((other) => (NAMES.indexOf(other) <= NAMES.indexOf(name) ? 1 : 2)),
    );
    expect(limits.look(name, "192.0.2.11").remaining).toBe(2);
  }
  expect(limits.count("general", "2001:db8:0:1::1").remaining).toBe(1);
  expect(limits.count("general", "2001:db8:0:1::2").remaining).toBe(0);
  // Differs from another network in its last digit, and from the longest text that is counted in nothing.
  expect(limits.count("general", "ffff:ffff:ffff:ffff::1").remaining).toBe(1);
  expect(limits.count("general", "ffff:ffff:ffff:fffe::1").remaining).toBe(1);
});

test("several requests are counted together, or none of them", () => {
  const limits = Limits.create(each(5));
  expect(limits.count("attestation", CLIENT, 6)).toMatchObject({ remaining: 5, exceeded: true });
  expect(limits.count("attestation", CLIENT, 3)).toMatchObject({ remaining: 2, exceeded: false });
  expect(limits.count("attestation", CLIENT, 3)).toMatchObject({ remaining: 2, exceeded: true });
  expect(limits.count("attestation", CLIENT, 2)).toMatchObject({ remaining: 0, exceeded: false });
});

test("an address is the same client, whichever address was counted before", () => {
  const limits = Limits.create(each(9));
  const counted = ["192.0.2.1", "192.0.2.123", "192.0.2.1", "2001:db8:1111:2222::1", "192.0.2.1", "192.0.2.123"];
  expect(counted.map((address) => limits.count("general", address).remaining)).toEqual([8, 8, 7, 8, 6, 7]);
});

test("memory is bounded however many addresses there are, and a busy client is not forgotten", () => {
  vi.restoreAllMocks();
  const before = heldMemory();
  const limits = Limits.create({ ...each(1), attestation: 5 });
  for (let i = 0; i < 200_000; i++) {
    limits.count("attestation", `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);
    if (i % 40_000 === 0) limits.count("attestation", CLIENT);
  }
  expect(limits.count("attestation", CLIENT).exceeded).toBe(true);
  expect(heldMemory() - before).toBeLessThan(NAMES.length * 9 * 1024 * 1024);
});

test("an address has another place in each service", () => {
  // If an attacker knew which addresses push out another one, that one could be refused and ask again at once.
  const places = Array.from({ length: 3 }, () => {
    const limits = Limits.create(each(1));
    limits.count("general", CLIENT);
    return new BigUint64Array(limits.buffer).findIndex((word, i) => i >= 2 && word !== 0n);
  });
  expect(new Set(places).size).toBeGreaterThan(1);
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
