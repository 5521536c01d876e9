/** `cairnlog operator freeze`, on a data directory and through the service that writes it. */
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { SettableClock } from "../cluster/rig/clock.js";
import { scratchFolder, cairnlog as spawned, startService } from "../service.js";
import { cairnlog } from "./harness.js";

const scratch = scratchFolder();
afterAll(() => scratch.remove());

test("ends a log whose service runs, and one that has stopped; a repeated command changes nothing", async () => {
  const data = join(scratch.path, "data");
  let service = await startService(data);
  const vkey = (await (await fetch(`${service.url}/tlog/vkey`)).text()).trim();
  const freeze = (...more: string[]) => cairnlog(["operator", "freeze", "--data", data, ...more]);
  const ending = ["--reason", "The year is over.", "--successor", "https://next.example", "--vkey", vkey];
  expect(await freeze()).toMatchObject({ code: 2, stderr: expect.stringContaining("--reason is missing") });
  expect(await freeze(...ending.slice(0, 4))).toMatchObject({ code: 2, stderr: expect.stringContaining("--vkey") });
  expect(await freeze(...ending)).toMatchObject({ code: 1, stderr: expect.stringMatching(/in use by process \d+/) });
  const { code, stdout, stderr } = await freeze(...ending, "--server", service.url, "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const { sth, ...said } = JSON.parse(stdout);
  expect(said).toEqual({ reason: "The year is over.", successor: { url: "https://next.example", vkey } });
  const answer = await fetch(`${service.url}/api/v1/log/sth`);
  expect(await answer.json()).toEqual(sth);

  const others = [["--reason", "Another.", ...ending.slice(2)], ending.slice(0, 2)];
  const repeated = async (...more: string[]) => {
    const again = await freeze(...ending, ...more);
    expect(again).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`is of size ${sth.tree_size}, with the root `),
    });
    for (const other of others) {
      const { code, stderr } = await freeze(...other, ...more);
      expect([code, stderr]).toEqual([1, expect.stringContaining("It goes on at https://next.example.")]);
    }
  };
  await repeated("--server", service.url);
  await service.stop();
  await repeated();
  service = await startService(data);
  expect((await (await fetch(`${service.url}/api/v1/log/sth`)).json()).tree_size).toBe(sth.tree_size);
  await service.stop();
});

test("monitor and client tell of the end and where the log goes on; a frozen log is not stalled", async () => {
  const [data, state] = [join(scratch.path, "told"), join(scratch.path, "state")];
  const [service, next] = [await startService(data), await startService(join(scratch.path, "next"))];
  const vkey = (await (await fetch(`${next.url}/tlog/vkey`)).text()).trim();
  const end = async () => cairnlog(["log", "shards", "--server", service.url, "--state", join(scratch.path, "client")]);
  // By this clock the log has been silent for a day.
  const clock = new SettableClock(join(scratch.path, "clock"));
  clock.set(86_400_000);
  const env = { ...process.env, ...clock.environment };
  const monitor = () =>
    spawned(["monitor", service.url, "--state", state, "--once", "--max-silence", "60", "--json"], { env });
  expect(await end()).toMatchObject({ code: 0, stdout: "The log goes on from no other one.\nIt has not ended.\n" });
  const ending = ["--reason", "It is full.", "--successor", next.url, "--vkey", vkey];
  expect(await cairnlog(["operator", "freeze", "--data", data, "--server", service.url, ...ending])).toMatchObject({
    code: 0,
  });
  const { stdout } = await end();
  const { fingerprint } = (await (await fetch(`${next.url}/api/v1/log/operator-key`)).json()) as {
    fingerprint: string;
  };
  expect(stdout).toMatch(/Entry 1 froze it at size 1, 2\S+: It is full\.\n/);
  expect(stdout).toContain(`It goes on at ${next.url}, under the operator key ${fingerprint}.`);
  const told = await monitor();
  expect(told.stderr).toContain(`NOTICE frozen: Entry 1 (`);
  expect(told.stderr).toContain(`It goes on at ${next.url}, under the verifier key ${vkey}.`);
  const lines = told.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    { alarm: "frozen", entry: { id: 1 } },
    { verified: 1, frozen: true },
  ]);
  expect(told.code).toBe(0);
  await service.stop();
  await next.stop();
});

test("ends a stopped log without a successor", async () => {
  const data = join(scratch.path, "stopped");
  await (await startService(data)).stop();
  const { code, stdout } = await cairnlog(["operator", "freeze", "--data", data, "--reason", "Nobody uses it."]);
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^The log is frozen\. Its last head is of size 1, with the root/),
  ]);
});
