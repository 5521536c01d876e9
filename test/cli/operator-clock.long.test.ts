/** A service under a clock that jumps a year ahead, as its clients and its operator see it. */
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { SettableClock } from "../cluster/rig/clock.js";
import { newSigner, registration } from "../server/signers.js";
import { cairnlog, scratchFolder, startService } from "../service.js";

const YEAR_MS = 365 * 86_400_000;
const folder = scratchFolder();
afterAll(() => folder.remove());

test("nothing is written until the clock agrees, or the operator confirms it", async () => {
  const dataDir = join(folder.path, "data");
  const clock = new SettableClock(join(folder.path, "clock"));
  let service = await startService(dataDir, { ...clock.environment, LOG_LEVEL: "silent" });
  const write = async () => {
    const body = JSON.stringify(registration(newSigner()));
    const answer = await fetch(`${service.url}/api/v1/keys/register`, { method: "POST", body });
    const { code, detail } = (await answer.json()) as { code?: string; detail?: string };
    return { status: answer.status, code, detail, retryAfter: answer.headers.get("retry-after") };
  };
  const ready = async () => {
    const answer = await fetch(`${service.url}/readyz`);
    const { detail, warnings } = (await answer.json()) as { detail?: string; warnings?: string[] };
    return { status: answer.status, detail, warnings };
  };
  const metric = async (name: string) =>
    Number(new RegExp(`^${name} (.+)$`, "m").exec(await (await fetch(`${service.url}/metrics`)).text())?.[1]);
  const operator = (...args: string[]) =>
    cairnlog(["operator", "clock", ...args, "--data", dataDir], { env: { ...process.env, ...clock.environment } });
  const REFUSED = { status: 503, code: "clock-suspect", retryAfter: "60" };
  const written = { interval: 100 };

  expect((await write()).status).toBe(200);
  clock.set(YEAR_MS);
  await expect.poll(write, written).toMatchObject(REFUSED);
  expect((await write()).detail).not.toMatch(/20\d\d/);
  await expect
    .poll(ready, written)
    .toMatchObject({ status: 503, detail: expect.stringContaining("operator clock --accept") });
  expect(await metric("cairnlog_clock_suspect")).toBe(1);
  expect((await fetch(`${service.url}/api/v1/log`)).status).toBe(200);

  clock.set(0);
  await expect.poll(async () => (await write()).status, written).toBe(200);
  expect(await metric("cairnlog_clock_suspect")).toBe(0);

  await service.stop();
  clock.set(YEAR_MS);
  service = await startService(dataDir, { ...clock.environment, LOG_LEVEL: "silent" });
  expect(await write()).toMatchObject(REFUSED);
  const looked = await operator("--json");
  expect(looked.code, looked.stderr).toBe(0);
  const { clock: says, expected, accepted } = JSON.parse(looked.stdout);
  expect(Date.parse(says) - Date.parse(expected)).toBeGreaterThan(YEAR_MS - 60_000);
  expect(accepted).toBe(false);
  expect(await write()).toMatchObject(REFUSED);

  expect((await operator("--accept")).stdout).toMatch(/^The clock says .*\nBy the time .*\nIt is taken for right\.\n$/);
  await expect.poll(async () => (await write()).status, written).toBe(200);
  // The clock was wrong all the same.
  await service.stop();
  clock.set(0);
  service = await startService(dataDir, { ...clock.environment, LOG_LEVEL: "silent" });
  expect((await write()).status).toBe(200);
  const { status, warnings } = await ready();
  expect(status).toBe(200);
  expect(warnings?.join()).toMatch(/The newest time on the log is 315\d+ seconds ahead of the clock/);
  expect(await metric("cairnlog_log_ahead_of_clock_seconds")).toBeGreaterThan(YEAR_MS / 1000 - 3600);
  await service.stop();
});
