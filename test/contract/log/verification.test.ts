/** Anybody may have the log verified, so what that costs must not depend on how many ask. */
import { describe, expect, test, vi } from "vitest";
import type { VerifyReport } from "#cairnlog/engine/log/check/verify.js";
import { SharedVerification } from "#cairnlog/server/verification.js";
import { attest } from "../../server/attesting.js";
import { expectProblem, startTestService } from "../../server/harness.js";

const report = (entry_count: number): VerifyReport => ({ valid: true, entry_count, errors: [], warnings: [] });

describe("a report", () => {
  function scene() {
    const log = { size: 5, verify: vi.fn(async () => report(log.size)) };
    const clock = { now: 1_000 };
    return { log, clock, verification: new SharedVerification(log, () => clock.now) };
  }

  test("is shared by all who ask while it is made, by one worker", async () => {
    const { log, verification } = scene();
    const reports = await Promise.all(Array.from({ length: 50 }, () => verification.report()));
    expect(new Set(reports).size).toBe(1);
    expect(log.verify.mock.calls).toEqual([[{ workers: 1 }]]);
  });

  test.each([
    [0, 0, 1],
    [59_999, 0, 1],
    [60_000, 0, 2],
    [0, 1, 2],
  ])("%d ms after it was ready, in a log that has grown by %d: %d runs in all", async (passed, grown, runs) => {
    const { log, clock, verification } = scene();
    await verification.report();
    clock.now += passed;
    log.size += grown;
    expect(await verification.report()).toEqual(report(log.size));
    expect(log.verify).toHaveBeenCalledTimes(runs);
  });

  test("of a run that failed is not kept", async () => {
    const { log, verification } = scene();
    log.verify.mockRejectedValueOnce(new Error("no worker"));
    await expect(verification.report()).rejects.toThrow("no worker");
    expect(await verification.report()).toEqual(report(5));
  });
});

test.each(["0", "2"])("a service with %s front ends runs one verification for all who ask", async (count) => {
  const service = await startTestService({ SERVICE_FRONT_ENDS: count });
  await attest(service.url, "one");
  const verify = vi.spyOn(service.server.registry.log, "verify");
  const ask = () => Promise.all(Array.from({ length: 20 }, () => service.post("/log/verify")));
  for (const { body } of [...(await ask()), ...(await ask())])
    expect(body).toMatchObject({ valid: true, entry_count: 2 });
  expect(verify.mock.calls).toEqual([[{ workers: 1 }]]);
  await attest(service.url, "two");
  expect((await service.post("/log/verify")).body).toMatchObject({ valid: true, entry_count: 3 });
  expect(verify).toHaveBeenCalledTimes(2);
});

test("an address may ask twelve times an hour", async () => {
  const service = await startTestService({ SERVICE_RATE_LIMITS: "on" });
  for (let i = 0; i < 12; i++) expect((await service.post("/log/verify")).status).toBe(200);
  const refused = await service.post("/log/verify");
  expectProblem(refused, 429);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
});
