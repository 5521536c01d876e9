/** The waiting time after the attempts or a quota are used up: whole seconds, rounded up, never zero. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { Tries } from "#cairnlog/engine/registry/access/tries.js";
import { takeFromQuota } from "#cairnlog/engine/registry/shared/quota.js";
import { runIn } from "../log/inline.js";
import { closeWorlds, openWorld, SECOND, type World } from "./world.js";

afterAll(closeWorlds);

/** Microseconds since the beginning, and the remaining seconds. */
const waits = (seconds: number) => [
  [0, seconds],
  [1, seconds],
  [SECOND - 1, seconds],
  [SECOND, seconds - 1],
  [SECOND + 1, seconds - 1],
  [(seconds - 1) * SECOND - 1, 2],
  [(seconds - 1) * SECOND, 1],
  [seconds * SECOND - 1, 1],
];

/** The seconds of a refusal, which must agree with its message. */
function named(refusal: unknown, about: string): number {
  if (!(refusal instanceof CairnlogError)) throw refusal;
  const { code, retryAfter, message } = refusal;
  expect({ code, message }).toEqual({ code: "rate-limited", message: `${about} Try again in ${retryAfter} seconds.` });
  return retryAfter!;
}

describe("tries", () => {
  const START = 1_735_689_600 * SECOND;
  let now = START;
  const clock = () => now;
  const refusal = (tries: Tries) => {
    try {
      tries.take("name");
    } catch (error) {
      return named(error, "Too many wrong tries.");
    }
    throw new Error("the try was let through");
  };

  test.each(waits(900))("%d µs after the first of them, in %d s", (passed, seconds) => {
    now = START;
    const tries = new Tries({ limit: 2, windowSeconds: 900, clock });
    tries.take("name");
    now += passed!;
    tries.take("name");
    expect(refusal(tries)).toBe(seconds);
    tries.take("another name");
  });

  test("count for exactly the window, each from its own moment", () => {
    now = START;
    const tries = new Tries({ limit: 2, windowSeconds: 900, clock });
    tries.take("name");
    now += 300 * SECOND;
    tries.take("name");
    now = START + 900 * SECOND;
    tries.take("name");
    expect(refusal(tries)).toBe(300);
    now = START + 1_200 * SECOND - 1;
    expect(refusal(tries)).toBe(1);
    now = START + 1_200 * SECOND;
    tries.take("name");
  });

  test("are reported with the right numbers", () => {
    const tries = new Tries({ limit: 0, windowSeconds: 1, clock, about: "reveals of this claim" });
    expect(() => tries.take("name")).toThrow(/^Too many reveals of this claim\. Try again in \S+ seconds\.$/);
  });
});

describe("a quota", () => {
  let world: World;
  let keys = 0;
  beforeAll(async () => {
    world = await openWorld();
  });
  const take = (key: string, limit: number | null = 2) =>
    runIn(world.registry.log, (transaction) => takeFromQuota(transaction, ["request-policy", key], limit));
  const refusal = async (key: string) =>
    named(await take(key).catch((error: unknown) => error), `The quota of 2 an hour for the key ${key} is used up.`);

  test.each(waits(3_600))("%d µs after the first that was taken, in %d s", async (passed, seconds) => {
    const key = `key ${keys++}`;
    await take(key);
    world.now += passed!;
    await take(key);
    expect(await refusal(key)).toBe(seconds);
    await take(`key ${keys++}`);
  });

  test("is full again after exactly an hour, which begins with the next use", async () => {
    const key = `key ${keys++}`;
    await take(key);
    await take(key);
    world.now += 3_600 * SECOND;
    await take(key);
    world.now += 600 * SECOND;
    await take(key);
    expect(await refusal(key)).toBe(3_000);
  });

  test("is absent if there is no limit", async () => {
    const key = `key ${keys++}`;
    for (let i = 0; i < 5; i++) await take(key, null);
    await take(key);
    await take(key);
    expect(await refusal(key)).toBe(3_600);
  });
});
